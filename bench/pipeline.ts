import { createHmac, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { secret } from './deliveries.ts'
import { handle } from './tally.ts'

// The receiver that a careful engineer writes by hand for one service and one process.

const payloadSchema = z.object({
  type: z.string().min(1),
  emitted_at: z.string().nullish(),
  media_id: z.string().min(1),
  qualities: z.string().nullish(),
  title: z.string().nullish(),
  status: z.string().nullish(),
  media_type: z.string().nullish(),
  user_id: z.string().nullish(),
})

type Payload = z.infer<typeof payloadSchema>

export type Taken = 'unauthorized' | 'malformed' | 'duplicate' | Payload

const storeOf = (keys: number) => new LRUCache<string, true>({ max: keys, ttl: 24 * 60 * 60 * 1_000 })

let seen = storeOf(100_000)

/** Begins with a store that is full of other keys. */
export function remember(keys: readonly string[]): void {
  seen = storeOf(keys.length)
  for (const key of keys) seen.set(key, true)
}

function isSigned(body: Buffer, signature: string | undefined): boolean {
  const expected = createHmac('sha256', secret).update(body).digest()
  const given = Buffer.from(signature ?? '', 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function parse(body: Buffer): Payload | undefined {
  try {
    return payloadSchema.safeParse(JSON.parse(body.toString())).data
  } catch {
    return undefined
  }
}

/** Makes the key by which an event is known again. */
export const keyOf = (payload: Payload) =>
  `${payload.type}|${payload.media_id}|${payload.emitted_at}|${payload.qualities}|${payload.status}`

/** Verifies, parses, validates and deduplicates. A returned payload is new: pass it to {@link run}. */
export function take(body: Buffer, signature: string | undefined): Taken {
  if (!isSigned(body, signature)) return 'unauthorized'
  const payload = parse(body)
  if (!payload) return 'malformed'
  const key = keyOf(payload)
  if (seen.get(key)) return 'duplicate'
  seen.set(key, true)
  return payload
}

/** The status of the answer. */
export const statusOf = (taken: Taken) => (taken === 'unauthorized' ? 401 : taken === 'malformed' ? 400 : 200)

/** The JSON of the answer, as the receiver of the package answers. */
export function answerOf(taken: Taken) {
  if (typeof taken === 'object') return { status: 'accepted' }
  if (taken === 'duplicate') return { status: 'duplicate' }
  const message = taken === 'unauthorized' ? 'the signature does not match' : 'the body is no event'
  return { status: 'error', code: taken, message }
}

/** Passes a new event to the handler. Call it after the answer. */
export function run(taken: Taken): void {
  if (typeof taken === 'object') handle(taken.media_id).catch(console.error)
}
