/** The command line makes no sense: the program ends with status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A flag of a command. In code its name is `timeScale`, on the command line `--time-scale`. */
export interface Flag<Value = unknown> {
  readonly help: string
  /** What its value is called in the help; a flag without one is a switch. */
  readonly takes?: string
  /** The environment variable that stands in for it. */
  readonly env?: string
  readonly required?: boolean
  /** @throws UsageError that says what it takes, after the name of the flag */
  readonly read: (text: string) => Value
}

export type Flags = Readonly<Record<string, Flag>>

/** What the flags were given, each by its name in code. */
export type Values<Of extends Flags> = {
  readonly [Name in keyof Of]: Of[Name] extends Flag<infer Value>
    ? Of[Name] extends { readonly required: true }
      ? Value
      : Value | undefined
    : never
}

/** A flag that takes no value. */
export const toggle = (help: string): Flag<true> => ({ help, read: () => true })

/** A flag that takes any text. */
export const text = (takes: string, help: string, env?: string): Flag<string> => ({
  takes,
  help,
  ...(env !== undefined && { env }),
  read: (given) => {
    if (given !== '') return given
    throw new UsageError('was given an empty text (is a variable unset?)')
  },
})

/** A flag that takes one of a few words. */
export const choice = <const Word extends string>(words: readonly Word[], help: string): Flag<Word> => ({
  takes: `<${words.join('|')}>`,
  help,
  read: (given) => {
    const word = words.find((each) => each === given)
    if (word !== undefined) return word
    throw new UsageError(`takes ${words.join(', ')}`)
  },
})

/** A flag that takes several words, separated by commas. */
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
    throw new UsageError(`takes ${words?.join(', ') ?? 'words'}, separated by commas`)
  },
})

/** A flag that takes a whole number. */
export const whole = (takes: string, help: string, min = 0, max = Number.MAX_SAFE_INTEGER): Flag<number> => ({
  takes,
  help,
  read: (given) => {
    if (/^\d+$/.test(given) && Number(given) >= min && Number(given) <= max) return Number(given)
    throw new UsageError(`takes a whole number from ${min} to ${max}`)
  },
})

/** A flag that takes an http or https URL. */
export const url = (help: string, example?: string, env?: string): Flag<string> => ({
  ...text('<url>', help, env),
  read: (given) => readUrl(given, example).href,
})

/** The same flag, without which the command makes no sense. */
export const required = <Value>(flag: Flag<Value>): Flag<Value> & { readonly required: true } => ({
  ...flag,
  required: true,
})

/** How fast time passes between deliveries. */
export const timeScale: Flag<number> = {
  takes: '<factor>',
  help: 'multiplies every pause, so that 0.1 is ten times as fast (default: 1)',
  read: (given) => {
    if (/^\d+(\.\d+)?$/.test(given) && Number(given) <= 1_000) return Number(given)
    throw new UsageError('takes a number from 0 to 1000, such as 0.1')
  },
}

/** The port of a server, on 127.0.0.1. */
export const port = (standard: number): Flag<number> =>
  whole('<n>', `port on 127.0.0.1, 0 for a free one (default: ${standard})`, 0, 65_535)

/** @throws UsageError that does not quote the text: a URL may hold a secret */
export function readUrl(given: string, example = 'http://127.0.0.1:3000/webhooks/media'): URL {
  if (/^https?:\/\//i.test(given) && URL.canParse(given)) return new URL(given)
  throw new UsageError(`takes an http or https URL, such as ${example}`)
}

/** The name of a flag on the command line. */
export const flagName = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
