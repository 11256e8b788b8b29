import { vi } from 'vitest'
import { type QueueInboxOptions, type QueueMessage, queueInbox } from '../../../src/inbox/queue.ts'
import {
  createReceiver,
  type IdempotencyStore,
  type InboxDefinition,
  lruStore,
  type ReceiverOptions,
  unverified,
} from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { interceptedStore } from '../memory/intercepted-store.ts'

export interface ProcessOptions extends Partial<Pick<QueueInboxOptions, 'send' | 'leaseMs' | 'sendTimeoutMs'>> {
  readonly store?: IdempotencyStore
  readonly receiver?: Partial<ReceiverOptions>
}

/** A process with a receiver over a queue inbox, and what it sent and logged. */
export function queueProcess({ store = lruStore(), receiver: options, send, ...times }: ProcessOptions = {}) {
  const sent: QueueMessage[] = []
  const { logger, lines } = recordingLogger('warn')
  const inbox: InboxDefinition = queueInbox({ send: send ?? ((message) => void sent.push(message)), store, ...times })
  const receiver = createReceiver({
    verify: unverified(),
    inbox,
    logger,
    ...options,
  })
  return { receiver, sent, lines }
}

/** A process whose store is on another machine: `shared` is what the processes share. */
export function remoteProcess({ store: shared, ...options }: ProcessOptions = {}) {
  const { store, ...control } = interceptedStore(shared)
  return { ...control, ...queueProcess({ ...options, store }) }
}

/** Makes the message of an event, as a receiver sends it. */
export async function messageOf(fields: { readonly media_id?: string } = {}): Promise<QueueMessage> {
  const { receiver, sent } = queueProcess({ receiver: { handlers: { 'encoding.finished': () => {} } } })
  await deliver(receiver, samplePayload('encoding.finished', fields))
  return sent[0] as QueueMessage
}

/** A handler that runs until it is told to end. */
export function heldHandler() {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const handler = vi.fn((_event: unknown, _context: { readonly signal: AbortSignal }) => ended)
  return { handler, end, started: () => vi.waitFor(() => handler.mock.calls.length === 1 || Promise.reject()) }
}
