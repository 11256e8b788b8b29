import { createReceiver, type IdempotencyStore, type Logger, memoryInbox, type Verifier } from '../../src/index.ts'
import type { Mount } from '../support/mounts.ts'

/** The fields of an event with which a scenario counts how often it was handled. */
export interface HandledEvent {
  readonly type: string
  readonly mediaId: string
}

/** The options with which a scenario starts a receiver. */
export interface SubjectOptions {
  readonly verify: Verifier
  readonly handle: (event: HandledEvent) => unknown
  /** @defaultValue a separate store, which is lost at a restart */
  readonly store?: IdempotencyStore
  readonly leaseMs?: number
  readonly ack?: 'accepted' | 'handled'
  /** @defaultValue the receiver's default */
  readonly logger?: Logger
  readonly port?: number
}

/** A running receiver. */
export interface Running {
  readonly url: string
  /** Stops the receiver after it has handled the acknowledged events. */
  close(): Promise<void>
}

/** Starts a receiver: ours behind one of its adapters, or one with a fault. */
export type Subject = (options: SubjectOptions) => Promise<Running>

/** Our receiver behind an adapter. */
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

/** Runs `attempt` against a receiver, and closes the receiver afterwards. */
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
