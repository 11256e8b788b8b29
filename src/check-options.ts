import { WebhookError } from './errors.ts'
import type { ReceiverOptions } from './options.ts'

/** The longest that a timer can wait, in ms; one that is told to wait longer fires at once. */
export const longestWaitMs = 2_147_483_647

/** The largest cache, in entries: its tables are allocated at once. */
export const largestCache = 10_000_000

/**
 * Checks the numbers among the options of something: durations, sizes and counts, all of them above 0.
 * @throws WebhookError `invalid_option`
 */
export function checkNumbers(owner: string, options: Readonly<Record<string, number>>, max = longestWaitMs): void {
  for (const [name, value] of Object.entries(options)) {
    if (Number.isInteger(value) && value > 0 && value <= max) continue
    throw new WebhookError('invalid_option', `${owner}: ${name} has to be a whole number from 1 to ${max}`)
  }
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

const levels = ['debug', 'info', 'warn', 'error'] as const

/** Checks what the types of the options already say, for callers without them. */
export function checkReceiverOptions(options: ReceiverOptions): void {
  // Callers without types may give nothing at all.
  const { verify, inbox, ack = 'accepted', ackTimeoutMs, retry, eventKey, logger } = (options ?? {}) as ReceiverOptions
  // Without the field a verifier that needs the bytes would be shown an empty body behind a parser, and could accept it.
  if (typeof verify?.verify !== 'function' || typeof verify.needsBytes !== 'boolean') {
    throw new WebhookError(
      'invalid_option',
      'createReceiver: choose how deliveries are verified, for example verify: urlToken({ secret }); ' +
        'unverified() accepts every delivery. One of your own needs name, needsBytes and verify',
    )
  }
  if (inbox !== undefined && typeof inbox?.accept !== 'function') {
    throw new WebhookError('invalid_option', 'createReceiver: inbox is no inbox (is memoryInbox not called?)')
  }
  if (logger !== undefined && levels.some((level) => typeof logger?.[level] !== 'function')) {
    throw new WebhookError('invalid_option', `createReceiver: a logger has the methods ${levels.join(', ')}`)
  }
  checkChoice('createReceiver', 'ack', ack, ['accepted', 'handled'])
  if (ack === 'handled' && inbox !== undefined && inbox.handleNow === undefined) {
    throw new WebhookError('invalid_option', "createReceiver: ack 'handled' works with the memory inbox only")
  }
  if (ack === 'handled' ? retry !== undefined : ackTimeoutMs !== undefined) {
    const idle = ack === 'handled' ? 'retry' : 'ackTimeoutMs'
    throw new WebhookError('invalid_option', `createReceiver: ${idle} has no effect with ack '${ack}'`)
  }
  if (eventKey !== undefined && typeof eventKey !== 'function') {
    checkHeaderName('createReceiver', 'eventKey is a function or { header }, and the header', eventKey?.header)
  }
  if (retry !== undefined && (typeof retry !== 'object' || retry === null)) {
    throw new WebhookError('invalid_option', 'createReceiver: retry is an object, such as { attempts: 3 }')
  }
}
