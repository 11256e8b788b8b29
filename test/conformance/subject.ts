import { createReceiver, type IdempotencyStore, type Logger, memoryInbox, type Verifier } from '../../src/index.ts'
import type { Mount } from '../adapters/mounts.ts'

/** What a handler is told; enough to count effects. */
export interface HandledEvent {
  readonly type: string
  readonly mediaId: string
}

/** What a scenario asks of the receiver it starts. */
export interface SubjectOptions {
  readonly verify: Verifier
  readonly handle: (event: HandledEvent) => unknown
  /** @defaultValue a store of its own, which a restart forgets */
  readonly store?: IdempotencyStore
  readonly leaseMs?: number
  readonly ack?: 'accepted' | 'handled'
  /** @defaultValue the receiver's own */
  readonly logger?: Logger
  readonly port?: number
}

/** A receiver that listens. */
export interface Running {
  readonly url: string
  /** Stops it, once it has handled what it acknowledged. */
  close(): Promise<void>
}

/** Starts a receiver: ours behind one of its adapters, or one that is known to be wrong. */
export type Subject = (options: SubjectOptions) => Promise<Running>

const ignore = () => {}
/** Logs nothing. */
export const silent: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }

/** Our receiver, behind an adapter. */
export const ours =
  (mount: Mount): Subject =>
  async ({ verify, handle, store, leaseMs = 5_000, ack = 'accepted', logger, port }) => {
    const receiver = createReceiver({
      verify,
      ack,
      inbox: memoryInbox({ leaseMs, ...(store && { store }) }),
      ...(ack === 'accepted' && { retry: { attempts: 2, baseMs: 1 } }),
      ...(logger && { logger }),
    })
    receiver.onAny(handle, { name: 'handle' })
    const { url, close } = await mount(receiver, port)
    return {
      url,
      async close() {
        await receiver.close()
        await close()
      },
    }
  }

/** Runs a receiver while something is tried on it; it is closed whatever comes of that. */
export async function running(
  subject: Subject,
  options: SubjectOptions,
  attempt: (url: string) => Promise<void>,
): Promise<void> {
  const { url, close } = await subject(options)
  try {
    await attempt(url)
  } finally {
    await close()
  }
}
