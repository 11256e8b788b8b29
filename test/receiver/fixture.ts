import {
  type AcceptedEvent,
  createReceiver,
  type DeliveryReport,
  type HandlingReport,
  type Inbox,
  type Logger,
  lruStore,
  memoryInbox,
  type ReceiverOptions,
  unverified,
} from '../../src/index.ts'

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** A memory inbox that does not make room for 100,000 keys, which takes ten milliseconds. */
export const smallInbox = () => memoryInbox({ store: lruStore({ max: 10 }), maxWaiting: 10 })

/** A receiver that accepts every delivery and says nothing, unless it is told otherwise. */
export const receiverWith = (options: Partial<ReceiverOptions> = {}) =>
  createReceiver({ verify: unverified(), inbox: smallInbox(), logger: silent, ...options })

/** An inbox that keeps nothing and answers what it is told to. */
export function answeringInbox(accept: (accepted: AcceptedEvent) => ReturnType<Inbox['accept']>): Inbox {
  return {
    accept,
    start() {},
    close: async () => ({ unfinished: [] }),
    stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 }),
    deadLetters: { list: () => [], get: () => undefined, replay: () => false, discard: () => false },
  }
}

export interface Line {
  readonly level: keyof Logger
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** A logger and hooks that keep what they are told. */
export function listening() {
  const lines: Line[] = []
  const deliveries: DeliveryReport[] = []
  const handlings: HandlingReport[] = []
  const log = (level: keyof Logger) => (details: object, message: string) =>
    void lines.push({ level, message, details: { ...details } })
  const logger: Logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  const hooks = {
    delivery: (report: DeliveryReport) => void deliveries.push(report),
    handling: (report: HandlingReport) => void handlings.push(report),
  }
  return { lines, deliveries, handlings, options: { logger, hooks } }
}

/** A promise and the function that resolves it. */
export function signalled<T = void>() {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
