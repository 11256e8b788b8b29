import { sha256 } from '#crypto'
import type { RefusedDelivery } from '../inbox.ts'
import type { EventData } from './event.ts'

/** A refused delivery as the data of a BullMQ job: JSON has no dates and no bytes. */
export interface RefusedData {
  /** Of its dead letter. It is made of the body, since the sender repeats what was refused. */
  readonly key: string
  readonly refused: {
    readonly reason: string
    readonly url: string
    readonly eventId?: string | undefined
    readonly receivedAt: string
    /** In base64. */
    readonly body: string
  }
}

export const isRefused = (data: EventData | RefusedData): data is RefusedData =>
  typeof (data as Partial<RefusedData> | null)?.refused?.body === 'string'

export async function refusedDataOf({ body, receivedAt, ...rest }: RefusedDelivery): Promise<RefusedData> {
  const text = toBase64(body)
  const key = `refused:${(await sha256(text)).slice(0, 32)}`
  return { key, refused: { ...rest, receivedAt: receivedAt.toISOString(), body: text } }
}

export function refusedOf({ refused }: RefusedData): RefusedDelivery {
  const { reason, url, eventId, receivedAt, body } = refused
  return { reason, url, eventId, receivedAt: new Date(receivedAt), body: fromBase64(body) }
}

const toBase64 = (bytes: Uint8Array) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
const fromBase64 = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
