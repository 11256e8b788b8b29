import type { IncomingMessage, RequestListener } from 'node:http'
import { nodeHandler } from '../../../../adapters/node.ts'
import { parseExactly, parseForm } from '../../../events/body.ts'
import { defaultMaxValues, type JsonObject, jsonTypes } from '../../../events/json.ts'
import { KeyInput } from '../../../events/kept-input.ts'
import { mediaService } from '../../../events/media-service/sender.ts'
import { isList, parseDelivery } from '../../../events/parse.ts'
import type { Reading } from '../../../events/sender.ts'
import type { MediaService } from '../../../events/types.ts'
import {
  createReceiver,
  type Delivery,
  type DeliveryReport,
  type Logger,
  type MediaEvent,
  type Telemetry,
  type Verifier,
  WebhookError,
} from '../../../index.ts'
import { within } from '../../../internal/timers.ts'
import type { ReceivedDelivery } from './find-verifiers.ts'

export interface ReportedDelivery {
  readonly delivery: ReceivedDelivery
  readonly method: string
  readonly report: DeliveryReport
  /** Absent if it is another service's or malformed, or was rejected before its body was read. */
  readonly event: MediaEvent | undefined
  /** What another service sent. Its values may be secret, so they are never printed. */
  readonly otherPayload: JsonObject | undefined
}

/** Limits for a body that the receiver left unread: bytes, ms. */
const [bodyLimit, bodyTimeMs] = [65_536, 2_000]

// The command prints this itself.
const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** Reads the media service's payloads, and accepts any other sender's without knowing its fields. */
const anySender: MediaService = {
  ...mediaService,
  body: {
    takes: () => true,
    contentTypes: 'any',
    write: JSON.stringify,
    parse: (text, headers) => (isForm(headers.get('content-type')) ? parseForm(text) : parseExactly(text)),
  },
  read(payload, headers, text) {
    const other = { format: 'flat', type: otherType, mediaId: '-', issues: [] } as Reading
    try {
      const event = mediaService.read(payload, headers, text) as Reading
      if (!isKnown(event.type)) return other
      const contentType = headers.get('content-type')
      if (!contentType || jsonTypes.takes(contentType)) return event
      throw new WebhookError('unsupported_media_type', 'content-type must be application/json')
    } catch (error) {
      if (isKnown(payload['type'])) throw error
      return other
    }
  },
}

const otherType = 'unknown'

export const isForm = (contentType: string | null): boolean =>
  contentType?.toLowerCase().startsWith('application/x-www-form-urlencoded') === true

const isKnown = (type: unknown): boolean => mediaService.types.some((each) => each === type)

/** A node:http listener that reports each delivery once it is answered. */
export function createListener(verify: Verifier, onDelivery: (reported: ReportedDelivery) => void) {
  const reports = new WeakMap<Delivery, DeliveryReport>()
  const receiver = createReceiver({ sender: anySender, verify, logger: silent, telemetry: reporting(reports) })
  receiver.onAny(() => {}, { name: 'listen' })

  const receive = async (delivery: Delivery, { rawHeaders }: IncomingMessage) => {
    const body = recorded(delivery.body)
    const watched = { ...delivery, body: body.read }
    const acknowledgement = await receiver.receive(watched)
    const report = reports.get(watched)
    // A token verifier rejects before the body is read, but the advice needs it.
    if (report?.outcome === 'unauthorized' && !body.wasRead()) {
      await within(bodyTimeMs, body.read(bodyLimit), () => {})
    }
    const received = { ...delivery, fields: pairFields(rawHeaders), body: body.bytes() }
    if (report !== undefined) {
      const event = await tryParseEvent(received, delivery)
      const isOther = event?.type === (otherType as string)
      onDelivery({
        delivery: received,
        method: delivery.method,
        report,
        event: isOther ? undefined : event,
        otherPayload: isOther ? event.payload : undefined,
      })
    }
    return acknowledgement
  }

  const listener: RequestListener = (request, response) =>
    nodeHandler({ receive: (delivery) => receive(delivery, request) })(request, response)
  return { listener, close: () => receiver.close({ timeoutMs: 1_000 }) }
}

/** Maps deliveries to reports. A hook would not tell which delivery a report is about. */
const reporting = (reports: WeakMap<Delivery, DeliveryReport>): Telemetry => ({
  opened() {},
  closing() {},
  startDelivery: (delivery) => ({
    within: (receive) => receive(),
    trace: undefined,
    end: (report) => void reports.set(delivery, report),
  }),
  startRun: () => ({ within: (call) => call(), end() {} }),
  measured() {},
})

function recorded(body: Delivery['body']) {
  let bytes: Uint8Array = new Uint8Array()
  let wasRead = false
  return {
    bytes: () => bytes,
    wasRead: () => wasRead,
    async read(limit: number) {
      wasRead = true
      const read = typeof body === 'function' ? await body(limit) : 'incomplete'
      if (ArrayBuffer.isView(read)) bytes = read
      return read
    },
  }
}

const pairFields = (raw: readonly string[]): [string, string][] =>
  Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? '', raw[2 * index + 1] ?? ''])

async function tryParseEvent({ body }: ReceivedDelivery, delivery: Delivery): Promise<MediaEvent | undefined> {
  try {
    const parsing = { sender: anySender, keySource: undefined, keyInput: new KeyInput(), maxValues: defaultMaxValues }
    const parsed = await parseDelivery(parsing, body, delivery)
    return isList(parsed) ? undefined : parsed
  } catch {
    return undefined
  }
}
