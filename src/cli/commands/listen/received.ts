import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, RequestListener } from 'node:http'
import { nodeHandler } from '../../../../adapters/node.ts'
import { parseEvent } from '../../../events/parse.ts'
import {
  createReceiver,
  type Delivery,
  type DeliveryReport,
  type Logger,
  type MediaEvent,
  type Verifier,
} from '../../../index.ts'
import { parseJsonObject } from '../../../internal/json.ts'
import type { ReceivedDelivery } from './find-verifiers.ts'

/** A delivery, and what the receiver made of it. */
export interface Received {
  readonly delivery: ReceivedDelivery
  readonly method: string
  readonly report: DeliveryReport
  /** Absent when it is malformed, or was rejected before it was read. */
  readonly event: MediaEvent | undefined
}

/** What is printed tells what would be logged. */
const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** A receiver of node:http that tells of each delivery, once it is acknowledged. */
export function createListener(verify: Verifier, tell: (received: Received) => void) {
  const reports = new AsyncLocalStorage<{ report?: DeliveryReport }>()
  const receiver = createReceiver({
    verify,
    logger: silent,
    hooks: {
      delivery(report) {
        const holder = reports.getStore()
        if (holder !== undefined) holder.report = report
      },
    },
  }).onAny(() => {}, { name: 'listen' })

  /** Lets the receiver have the delivery, and keeps what there was of its body. */
  const receive = async (delivery: Delivery, { rawHeaders }: IncomingMessage) => {
    const body = watched(delivery.body)
    const holder: { report?: DeliveryReport } = {}
    const acknowledgement = await reports.run(holder, () => receiver.receive({ ...delivery, body: body.read }))
    const received = { ...delivery, fields: fieldsOf(rawHeaders), body: body.bytes() }
    if (holder.report !== undefined) {
      tell({
        delivery: received,
        method: delivery.method,
        report: holder.report,
        event: await eventOf(received, delivery),
      })
    }
    return acknowledgement
  }

  const listener: RequestListener = (request, response) =>
    nodeHandler({ receive: (delivery) => receive(delivery, request) })(request, response)
  return { listener, close: () => receiver.close({ timeoutMs: 1_000 }) }
}

function watched(body: Delivery['body']) {
  let bytes: Uint8Array = new Uint8Array()
  return {
    bytes: () => bytes,
    async read(limit: number) {
      const read = typeof body === 'function' ? await body(limit) : 'incomplete'
      if (read instanceof Uint8Array) bytes = read
      return read
    },
  }
}

const fieldsOf = (raw: readonly string[]): [string, string][] =>
  Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? '', raw[2 * index + 1] ?? ''])

async function eventOf({ body }: ReceivedDelivery, delivery: Delivery): Promise<MediaEvent | undefined> {
  try {
    return await parseEvent(parseJsonObject(body), delivery, undefined, undefined)
  } catch {
    return undefined
  }
}
