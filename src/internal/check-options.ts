import { WebhookError } from '../errors.ts'
import { maxWaitMs } from './timers.ts'

/** Maximum size of a cache, in entries: its tables are allocated up front. */
export const maxCache = 10_000_000

/** What an option must be, in the words of its error, and the test of a value that is given. */
export type Rule = readonly [mustBe: string, test: (value: never) => boolean, isRequired?: boolean]

/** One rule an option: a new option without one does not compile. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: Rule }

/**
 * Checks the options of a public function: what is misspelt or mistyped would have no effect, silently.
 * @throws WebhookError `invalid_option`
 */
export function checkOptions<Options extends object>(
  owner: string,
  options: Options | undefined,
  rules: Rules<Options>,
): void {
  if (options !== undefined && (typeof options !== 'object' || options === null || Array.isArray(options)))
    throw invalid(owner, `the options have to be an object, such as { ${Object.keys(rules)[0]} }`)
  for (const name in options)
    if (!Object.hasOwn(rules, name))
      throw invalid(owner, `there is no option ${name}; there are ${Object.keys(rules).join(', ')}`)
  for (const [name, [mustBe, test, isRequired]] of Object.entries<Rule>(rules)) {
    const value = options?.[name as keyof Options]
    if (value === undefined ? isRequired : !test(value as never)) throw invalid(owner, `${name} has to be ${mustBe}`)
  }
}

const invalid = (owner: string, problem: string): WebhookError =>
  new WebhookError('invalid_option', `${owner}: ${problem}`)

export const required = ([mustBe, test]: Rule): Rule => [mustBe, test, true]

/** Durations, sizes and counts. By default the maximum is that of a timer. */
export const wholeNumber = (max = maxWaitMs, min = 1): Rule => [
  `a whole number from ${min} to ${max}`,
  (value: number) => Number.isInteger(value) && value >= min && value <= max,
]

/** A time limit in ms; `Infinity` for none. */
export const timeLimit: Rule = [
  'a number of ms, 0 or more',
  (value: unknown) => typeof value === 'number' && value >= 0,
]

export const flag: Rule = ['true or false', (value) => typeof value === 'boolean']

export const text: Rule = ['a non-empty string', (value) => typeof value === 'string' && value !== '']

/** A string that may be empty. */
export const anyText: Rule = ['a string', (value) => typeof value === 'string']

export const aFunction: Rule = ['a function', (value) => typeof value === 'function']

export const anObject: Rule = ['an object', (value) => typeof value === 'object' && value !== null]

export const aDate: Rule = ['a valid Date', (value: Date | null) => !Number.isNaN(value?.getTime?.() ?? Number.NaN)]

export const anAbortSignal: Rule = [
  'the signal of an AbortController',
  (value: AbortSignal | null) => typeof value?.aborted === 'boolean',
]

/** For options that the function itself checks, because its error says more. */
export const checkedApart: Rule = ['', () => true]

export const oneOf = (...choices: readonly string[]): Rule => [
  `one of ${choices.join(', ')}`,
  (value) => choices.includes(value),
]

/** @param what what has these methods, and where it comes from */
export const having = (what: string, ...methods: readonly string[]): Rule => [
  what,
  (value: Readonly<Record<string, unknown>> | null) => methods.every((name) => typeof value?.[name] === 'function'),
]

export const headerName: Rule = [
  'the name of a header, such as x-signature',
  (value: unknown) => typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]+$/.test(value),
]
