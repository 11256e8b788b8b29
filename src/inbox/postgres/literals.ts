import pg from 'pg'

/** Returns a parameter of a statement, from 1 on, or its value as SQL. */
export type Parameter = (number: number) => string

/** The parameters of a statement that is sent with its values. */
export const parameter: Parameter = (number) => `$${number}`

/** The values of the parameters as SQL, for a message with several statements: it has no parameters. */
export function literals(values: readonly unknown[]): Parameter {
  const texts = values.map(literalOf)
  return (number) => texts[number - 1] as string
}

export function literalOf(value: unknown): string {
  if (Array.isArray(value)) return `ARRAY[${value.map(literalOf)}]`
  if (value === null || value === undefined) return 'NULL'
  const text = value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : `${value}`
  return pg.Client.prototype.escapeLiteral(text)
}
