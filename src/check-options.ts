import { WebhookError } from './errors.ts'
import { longestWaitMs } from './internal/timers.ts'

/** Maximum size of a cache, in entries: its tables are allocated up front. */
export const largestCache = 10_000_000

/**
 * Checks options that are numbers: durations, sizes and counts, all of them whole and above 0. `undefined` passes.
 * @param max the maximum; by default that of a timer
 * @throws WebhookError `invalid_option`
 */
export function checkNumbers(
  owner: string,
  options: Readonly<Record<string, number | undefined>>,
  max = longestWaitMs,
): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || (Number.isInteger(value) && value > 0 && value <= max)) continue
    throw new WebhookError('invalid_option', `${owner}: ${name} has to be a whole number from 1 to ${max}`)
  }
}

/**
 * Checks that no option is left over: a misspelt one would be ignored silently.
 * @param options those that were not destructured, or all of them with the names of the `known` ones
 * @throws WebhookError `invalid_option`
 */
export function checkUnknown(owner: string, options: object, known: readonly string[] = []): void {
  for (const name in options)
    if (!known.includes(name)) throw new WebhookError('invalid_option', `${owner}: there is no option ${name}`)
}

/**
 * Checks an option that takes one of a few values.
 * @throws WebhookError `invalid_option`
 */
export function checkChoice(owner: string, name: string, value: string, choices: readonly string[]): void {
  if (choices.includes(value)) return
  throw new WebhookError('invalid_option', `${owner}: ${name} has to be one of ${choices.join(', ')}`)
}

/**
 * Checks the name of a header.
 * @throws WebhookError `invalid_option`
 */
export function checkHeaderName(owner: string, option: string, name: unknown): void {
  if (typeof name === 'string' && /^[\w!#$%&'*+.^`|~-]+$/.test(name)) return
  throw new WebhookError('invalid_option', `${owner}: ${option} has to be the name of a header, such as x-signature`)
}
