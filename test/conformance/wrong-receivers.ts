import { buffer } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import {
  hmacSignature,
  type IdempotencyStore,
  type Logger,
  lruStore,
  type MaybePromise,
  type SignedDelivery,
  type Verification,
  type Verifier,
} from '../../src/index.ts'
import { mountListener } from '../support/mounts.ts'
import { silent } from '../support/silent.ts'
import { signature } from './sending.ts'
import type { HandledEvent, Subject } from './subject.ts'

/** An event that is about to be handled, and the places where its key can be recorded. */
interface Step {
  readonly key: string
  readonly event: HandledEvent
  readonly store: IdempotencyStore
  /** The receiver's own memory, outside the store. */
  readonly seen: Map<string, number>
  readonly handle: () => Promise<void>
}

/** The steps in which receivers have faults. */
interface Steps {
  verify(delivery: SignedDelivery, verifier: Verifier): MaybePromise<Verification>
  handle(step: Step): Promise<void>
  log(logger: Logger, event: HandledEvent, body: string): void
}

const owner = 'owner'

/** The correct steps. */
const right: Steps = {
  verify: (delivery, verifier) => verifier.verify(delivery),
  async handle({ key, store, handle }) {
    if ((await store.claim(key, owner, 5_000)) !== 'claimed') return
    try {
      await handle()
    } catch (error) {
      await store.release(key, owner)
      throw error
    }
    // If completing fails, the lease keeps other owners out until the next attempt.
    await Promise.resolve(key)
      .then((done) => store.complete(done, owner))
      .catch(() => {})
  },
  log: (logger, { type, mediaId }) => logger.info({ type, mediaId }, 'delivery accepted'),
}

/** A receiver written by hand on node:http, with one step replaced. */
const handWritten =
  (fault: Partial<Steps>): Subject =>
  async ({ verify, handle, store = lruStore(), logger = silent, port }) => {
    const steps = { ...right, ...fault }
    const seen = new Map<string, number>()
    const receive = async (delivery: SignedDelivery): Promise<number> => {
      if (!(await steps.verify(delivery, verify)).verified) return 401
      const text = new TextDecoder().decode(delivery.body)
      const { type, media_id: mediaId, emitted_at, qualities } = JSON.parse(text)
      if (typeof type !== 'string' || typeof mediaId !== 'string') return 400
      const event = { type, mediaId }
      steps.log(logger, event, text)
      const key = JSON.stringify([type, mediaId, emitted_at, qualities])
      await steps.handle({ key, event, store, seen, handle: async () => void (await handle(event)) })
      return 200
    }
    return mountListener(async (request, response) => {
      const body = await buffer(request)
      const headers = { get: (name: string) => request.headersDistinct[name]?.join(', ') ?? null }
      const status = await receive({ url: request.url ?? '', headers, body }).catch(() => 500)
      response.writeHead(status).end()
    }, port)
  }

const stages = ['file.received', 'encoding.started', 'partial.finished', 'encoding.finished']

/** The receiver without a fault. */
export const carefulReceiver = handWritten({})

/** Receivers with one fault each. The faults are known from real receivers. */
export const wrongReceivers = {
  'checks for a duplicate, and records the event later': handWritten({
    async handle({ key, seen, handle }) {
      if (seen.has(key)) return
      // The time that a database takes to answer.
      await turn()
      seen.set(key, 1)
      await handle()
    },
  }),
  'runs the handler before it checks for a duplicate': handWritten({
    async handle({ key, seen, handle }) {
      await handle()
      if (!seen.has(key)) seen.set(key, 1)
    },
  }),
  'verifies JSON that it parsed and wrote again': handWritten({
    verify({ body, ...delivery }, verifier) {
      const rewritten = JSON.stringify(JSON.parse(new TextDecoder().decode(body)))
      return verifier.verify({ ...delivery, body: new TextEncoder().encode(rewritten) })
    },
  }),
  'accepts signatures of any age': handWritten({
    verify(delivery) {
      const timestamp = { ...signature.timestamp, toleranceSeconds: 2_000_000_000 }
      return hmacSignature({ ...signature, timestamp }).verify(delivery)
    },
  }),
  'assumes that events arrive in order': handWritten({
    async handle({ event: { type, mediaId }, seen, handle }) {
      const stage = stages.indexOf(type)
      if (stage < (seen.get(mediaId) ?? 0)) return
      seen.set(mediaId, stage)
      await handle()
    },
  }),
  'logs payloads': handWritten({
    log: (logger, _, body) => logger.info({ body }, 'delivery accepted'),
  }),
  'writes payloads to the console': handWritten({
    log: (_logger, _event, body) => console.log(body),
  }),
  'releases its claim because completing failed': handWritten({
    async handle({ key, store, handle }) {
      if ((await store.claim(key, owner, 5_000)) !== 'claimed') return
      try {
        await handle()
        await store.complete(key, owner)
      } catch (error) {
        await store.release(key, owner)
        throw error
      }
    },
  }),
} satisfies Record<string, Subject>
