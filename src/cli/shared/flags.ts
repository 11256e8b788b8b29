/** An invalid command line (exit code 2). */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A flag: `timeScale` in code, `--time-scale` on the command line. */
export interface Flag<Value = unknown> {
  readonly help: string
  /** Placeholder in the help, such as `<n>`. A flag without one is a switch. */
  readonly takes?: string
  readonly env?: string
  /** `-` reads the value from standard input. */
  readonly stdin?: true
  /** The value is a file name (`-` for standard input). `read` gets the contents. */
  readonly file?: true
  readonly required?: boolean
  /** @throws UsageError with a message that follows the flag's name */
  readonly read: (text: string) => Value
}

export type Flags = Readonly<Record<string, Flag>>

export type Values<Of extends Flags> = {
  readonly [Name in keyof Of]: Of[Name] extends Flag<infer Value>
    ? Of[Name] extends { readonly required: true }
      ? Value
      : Value | undefined
    : never
}

export const toggle = (help: string): Flag<true> => ({ help, read: () => true })

export const text = (takes: string, help: string, env?: string): Flag<string> => ({
  takes,
  help,
  ...(env !== undefined && { env }),
  read: (given) => {
    if (given !== '') return given
    throw new UsageError('is empty (is a variable unset?)')
  },
})

export const choice = <const Word extends string>(words: readonly Word[], help: string): Flag<Word> => ({
  takes: `<${words.join('|')}>`,
  help,
  read: (given) => {
    const word = words.find((each) => each === given)
    if (word !== undefined) return word
    throw new UsageError(`takes one of ${words.join(', ')}`)
  },
})

export const list = <Item extends string = string>(
  takes: string,
  help: string,
  words?: readonly Item[],
): Flag<readonly Item[]> => ({
  takes,
  help,
  read: (given) => {
    const items = given.split(',').map((item) => item.trim()) as Item[]
    if (items.every((item) => item !== '' && words?.includes(item) !== false)) return items
    throw new UsageError(
      `takes ${words === undefined ? 'words' : `one or more of ${words.join(', ')}`}, separated by commas`,
    )
  },
})

export const wholeNumber = (takes: string, help: string, min = 0, max = Number.MAX_SAFE_INTEGER): Flag<number> => ({
  takes,
  help,
  read: (given) => {
    if (/^\d+$/.test(given) && Number(given) >= min && Number(given) <= max) return Number(given)
    throw new UsageError(`takes a whole number from ${min} to ${max}`)
  },
})

export const url = (help: string, example?: string, env?: string): Flag<string> => ({
  ...text('<url>', help, env),
  read: (given) => readUrl(given, example).href,
})

export const required = <Value>(flag: Flag<Value>): Flag<Value> & { readonly required: true } => ({
  ...flag,
  required: true,
})

/** `--time-scale`: multiplies the delays between deliveries. */
export const timeScale: Flag<number> = {
  takes: '<factor>',
  help: 'a factor for every delay: 0.1 is ten times as fast (default: 1)',
  read: (given) => {
    if (/^\d+(\.\d+)?$/.test(given) && Number(given) <= 1_000) return Number(given)
    throw new UsageError('takes a number from 0 to 1000, such as 0.1')
  },
}

/** `--port` of a server on 127.0.0.1. */
export const port = (standard: number): Flag<number> =>
  wholeNumber('<n>', `the port on 127.0.0.1, or 0 for any free port (default: ${standard})`, 0, 65_535)

/** @throws UsageError that does not quote the URL, which may contain a secret */
function readUrl(given: string, example = 'http://127.0.0.1:3000/webhooks/media'): URL {
  if (/^https?:\/\//i.test(given) && URL.canParse(given)) return new URL(given)
  throw new UsageError(`takes an http or https URL, such as ${example}`)
}

/** `--time-scale` for `timeScale`. */
export const flagName = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
