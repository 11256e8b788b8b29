import pg from 'pg'

/** Returns the n-th parameter of a statement (from 1): its placeholder, or its value as SQL. */
export type Parameter = (number: number) => string

/** Placeholders, for a statement sent with its values. */
export const parameter: Parameter = (number) => `$${number}`

/** Values as SQL, for a message of several statements: it can't have parameters. */
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
