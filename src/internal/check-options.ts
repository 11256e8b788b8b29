import { WebhookError } from '../errors.ts'
import { isPromise } from './maybe-promise.ts'
import { maxWaitMs } from './timers.ts'

/** Maximum cache size (entries). Its tables are allocated up front. */
export const maxCache = 10_000_000

/** The words after "must be" in the error, and the test for them. */
export type Rule = readonly [mustBe: string, test: (value: never) => boolean, isRequired?: boolean]

/** A rule per option: a new option without one does not compile. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: Rule }

/**
 * Rejects unknown and mistyped options, which would otherwise have no effect.
 * @throws WebhookError `invalid_option`
 */
export function checkOptions<Options extends object>(
  owner: string,
  options: Options | undefined,
  rules: Rules<Options>,
): void {
  if (options !== undefined && !hasOptions(options))
    throw invalid(owner, `the options must be an object, such as { ${Object.keys(rules)[0]} }`)
  for (const name in options)
    if (!Object.hasOwn(rules, name))
      throw invalid(owner, `there is no option ${name}; there are ${Object.keys(rules).join(', ')}`)
  for (const [name, [mustBe, test, isRequired]] of Object.entries<Rule>(rules)) {
    const value = options?.[name as keyof Options]
    if (value === undefined ? isRequired : !test(value as never)) throw invalid(owner, `${name} must be ${mustBe}`)
  }
}

/** False for what holds its entries elsewhere, such as a Map, or later, as a promise does: it would set no option. */
export const hasOptions = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !(Symbol.iterator in value) && !isPromise(value)

const invalid = (owner: string, problem: string): WebhookError =>
  new WebhookError('invalid_option', `${owner}: ${problem}`)

export const required = ([mustBe, test]: Rule): Rule => [mustBe, test, true]

/** Durations, sizes and counts. The default maximum is the longest timer (ms). */
export const wholeNumber = (max = maxWaitMs, min = 1): Rule => [
  `a whole number from ${min} to ${max}`,
  (value: number) => Number.isInteger(value) && value >= min && value <= max,
]

/** Time limit (ms); `Infinity` for none. */
export const timeLimit: Rule = [
  'a number of ms, 0 or more',
  (value: unknown) => typeof value === 'number' && value >= 0,
]

export const flag: Rule = ['true or false', (value) => typeof value === 'boolean']

export const text: Rule = ['a non-empty string', (value) => typeof value === 'string' && value !== '']

export const anyText: Rule = ['a string', (value) => typeof value === 'string']

export const aFunction: Rule = ['a function', (value) => typeof value === 'function']

/** For objects whose names the user chooses, which are listed: a Map, or an instance's methods, would be overlooked. */
export const isPlainObject = (value: unknown): value is object => {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  // `Object.prototype` of any realm.
  return prototype === null || Object.hasOwn(prototype, 'isPrototypeOf')
}

export const aPlainObject: Rule = [
  'an object such as { name: value }, not a list, a Map or the instance of a class',
  isPlainObject,
]

export const aDate: Rule = ['a valid Date', (value: Date | null) => !Number.isNaN(value?.getTime?.() ?? Number.NaN)]

export const anAbortSignal: Rule = [
  'the signal of an AbortController',
  (value: AbortSignal | null) => typeof value?.aborted === 'boolean',
]

/** For options whose own function checks them, with a better error. */
export const checkedApart: Rule = ['', () => true]

export const oneOf = (...choices: readonly string[]): Rule => [
  `one of ${choices.join(', ')}`,
  (value) => choices.includes(value),
]

/** @param what names a value with these methods, and where to get one */
export const having = (what: string, ...methods: readonly string[]): Rule => [
  what,
  (value: Readonly<Record<string, unknown>> | null) => methods.every((name) => typeof value?.[name] === 'function'),
]

export const headerName: Rule = [
  'the name of a header, such as x-signature',
  (value: unknown) => typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]+$/.test(value),
]
