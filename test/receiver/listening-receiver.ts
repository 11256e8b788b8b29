import {
  type AcceptedEvent,
  type AttemptReport,
  type ConflictReport,
  createReceiver,
  type DeliveryReport,
  type Inbox,
  type InboxDefinition,
  lruStore,
  memoryInbox,
  type ReceiverOptions,
  type RunReport,
  unverified,
} from '../../src/index.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { silent } from '../support/silent.ts'

/** Defines a memory inbox with room for 10 keys: making room for 100,000 takes ten milliseconds. */
export const smallInbox = () => memoryInbox({ store: lruStore({ max: 10 }), maxWaiting: 10 })

/** Makes a receiver that accepts every delivery and logs nothing, unless the options say otherwise. */
export const receiverWith = (options: Partial<ReceiverOptions> = {}) =>
  createReceiver({ verify: unverified(), inbox: smallInbox(), logger: silent, ...options })

/** Defines an inbox that keeps nothing and answers with the result of the function; `rest` adds to it. */
export function answeringInbox(
  accept: (accepted: AcceptedEvent) => ReturnType<Inbox['accept']>,
  rest: Partial<Inbox> = {},
): InboxDefinition {
  const inbox: Inbox = {
    accept,
    close: async () => ({ unfinished: [] }),
    stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 }),
    deadLetters: { list: () => [], get: () => undefined, replay: () => false, discard: () => false },
    ...rest,
  }
  return { name: 'answeringInbox', open: () => inbox }
}

/** Makes a logger and hooks that keep every line and report. */
export function listening() {
  const { logger, lines } = recordingLogger()
  const deliveries: DeliveryReport[] = []
  const handlings: RunReport[] = []
  const attempts: AttemptReport[] = []
  const conflicts: ConflictReport[] = []
  const hooks = {
    delivery: (report: DeliveryReport) => void deliveries.push(report),
    handling: (report: RunReport) => void handlings.push(report),
    attempt: (report: AttemptReport) => void attempts.push(report),
    conflict: (report: ConflictReport) => void conflicts.push(report),
  }
  return { lines, deliveries, handlings, attempts, conflicts, options: { logger, hooks } }
}
