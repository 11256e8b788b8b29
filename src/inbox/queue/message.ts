import { sha256 } from '#crypto'
import type { MediaEvent } from '../../events/media-service/catalogue.ts'
import { decoder } from '../../internal/utf8.ts'
import { reviveAccepted } from '../engine/stored.ts'
import type { AcceptedEvent } from '../inbox.ts'
import type { TraceCarrier } from '../reading.ts'

/** An event in a queue. Plain JSON. */
export interface QueueMessage {
  readonly version: 1
  readonly key: string
  /** The key's hash (64 hex digits), for queues that restrict deduplication ids. */
  readonly deduplicationId: string
  readonly mediaId: string
  /** The media item id's hash (64 hex digits): the group or partition for queues that keep order within one. */
  readonly group: string
  readonly receivedAt: string
  /** The event, with `emittedAt` in ISO 8601. */
  readonly event: Omit<MediaEvent, 'emittedAt'> & { readonly emittedAt?: string | undefined }
  /** Trace context of the delivery, if the receiver has `telemetry`. The handlers join it. */
  readonly trace?: TraceCarrier | undefined
}

export async function toMessage({ event, receivedAt, trace }: AcceptedEvent): Promise<QueueMessage> {
  const { key, mediaId, emittedAt } = event
  return {
    version: 1,
    key,
    deduplicationId: await sha256(JSON.stringify(key)),
    mediaId,
    group: await sha256(JSON.stringify(mediaId)),
    receivedAt: receivedAt.toISOString(),
    event: { ...event, emittedAt: emittedAt?.toISOString() },
    ...(trace && { trace }),
  }
}

/** Reads a message: the object, or its JSON as text or bytes. Returns `undefined` if it isn't one. */
export function readMessage(message: unknown): AcceptedEvent | undefined {
  try {
    const value = (isBytes(message) ? decoder.decode(message) : message) as string | Partial<QueueMessage>
    const fields: Partial<QueueMessage> = typeof value === 'string' ? JSON.parse(value) : value
    const { version, receivedAt, event, trace } = fields
    if (version !== 1 || receivedAt === undefined) return undefined
    const isEvent = [event?.key, event?.type, event?.mediaId].every((field) => typeof field === 'string')
    const accepted = reviveAccepted({ event, receivedAt, trace: readTrace(trace) } as unknown as AcceptedEvent)
    const times = [accepted.receivedAt, accepted.event.emittedAt]
    return isEvent && !times.some((time) => Number.isNaN(time?.getTime())) ? accepted : undefined
  } catch {
    return undefined
  }
}

/** Reads a trace. An invalid one is dropped: the event can be handled without it. */
function readTrace(trace: unknown): TraceCarrier | undefined {
  if (typeof trace !== 'object' || trace === null) return undefined
  return Object.values(trace).every((value) => typeof value === 'string') ? (trace as TraceCarrier) : undefined
}

/** Works across realms. */
const isBytes = (message: unknown): message is ArrayBuffer | Uint8Array =>
  ArrayBuffer.isView(message) || Object.prototype.toString.call(message) === '[object ArrayBuffer]'
