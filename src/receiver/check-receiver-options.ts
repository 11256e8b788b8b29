import { WebhookError } from '../errors.ts'
import { checkChoice, checkHeaderName } from '../internal/check-options.ts'
import type { ReceiverOptions } from './options.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const

/** Checks what the types of the options already say, for callers without them. */
export function checkReceiverOptions(options: ReceiverOptions): void {
  // Callers without types may give nothing at all.
  const { verify, inbox, ack = 'accepted', ackTimeoutMs, retry, eventKey, logger } = (options ?? {}) as ReceiverOptions
  // Without the field a verifier that needs the bytes would be shown an empty body behind a parser, and could accept it.
  if (typeof verify?.verify !== 'function' || typeof verify.needsBytes !== 'boolean') {
    throw invalid(
      'choose how deliveries are verified, for example verify: urlToken({ secret }); ' +
        'unverified() accepts every delivery. One of your own needs name, needsBytes and verify',
    )
  }
  if (inbox !== undefined && typeof inbox?.accept !== 'function') {
    throw invalid('inbox is no inbox (is memoryInbox not called?)')
  }
  if (logger !== undefined && levels.some((level) => typeof logger?.[level] !== 'function')) {
    throw invalid(`a logger has the methods ${levels.join(', ')}`)
  }
  checkChoice('createReceiver', 'ack', ack, ['accepted', 'handled'])
  if (ack === 'handled' && inbox !== undefined && inbox.handleNow === undefined) {
    throw invalid("ack 'handled' works with the memory inbox only")
  }
  if (ack === 'handled' ? retry !== undefined : ackTimeoutMs !== undefined) {
    const idle = ack === 'handled' ? 'retry' : 'ackTimeoutMs'
    throw invalid(`${idle} has no effect with ack '${ack}'`)
  }
  if (eventKey !== undefined && typeof eventKey !== 'function') {
    checkHeaderName('createReceiver', 'eventKey is a function or { header }, and the header', eventKey?.header)
  }
  if (retry !== undefined && (typeof retry !== 'object' || retry === null)) {
    throw invalid('retry is an object, such as { attempts: 3 }')
  }
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `createReceiver: ${message}`)
