import { WebhookError } from '../../errors.ts'
import { parseAgain, type ReplayingReceiver } from '../operations/dead-letters.ts'
import { checkPage } from '../operations/page.ts'
import { matching, replayAll } from '../operations/replay-all.ts'
import type {
  DeadLetter,
  DeadLetters,
  InspectedDeadLetters,
  KeysOptions,
  ReplayAllOptions,
  ReplayReport,
} from '../reading.ts'
import { type Accepting, addEvent } from './expectations.ts'
import { isEvent, toDeadLetter, toUnreadable, type UnreadableData } from './job.ts'
import { type EventJob, type EventQueue, inBatches } from './queue.ts'
import { KeptUnreadable, unreadableLetter } from './unreadable.ts'

type AcceptingReceiver = ReplayingReceiver & Accepting

/** Dead letters: BullMQ's failed jobs, and unreadable deliveries. */
export class BullmqDeadLetters implements InspectedDeadLetters {
  readonly #queue: EventQueue
  readonly #unreadable: KeptUnreadable
  readonly #receiver: AcceptingReceiver | undefined
  readonly #ttlMs: number

  /** @param receiver without one, a replayed unreadable delivery goes to a process that has one */
  constructor(queue: EventQueue, receiver: AcceptingReceiver | undefined, ttlMs: number) {
    this.#queue = queue
    this.#unreadable = new KeptUnreadable(queue)
    this.#receiver = receiver
    this.#ttlMs = ttlMs
  }

  async list(page?: Parameters<DeadLetters['list']>[0]): Promise<readonly DeadLetter[]> {
    const { limit, offset } = checkPage(page)
    // If the end comes before the start, BullMQ reads up to the last job.
    if (limit < 1) return []
    const kept = await this.#unreadable.order()
    // At most all unreadable deliveries are newer than the first job.
    const first = Math.max(0, offset - kept.length)
    const jobs = await this.#queue.reach((queue) => queue.getFailed(first, offset + limit - 1))
    const letters = [
      ...kept.map(([key, at]) => ({ at, read: () => this.get(key) })),
      ...jobs.map((job) => ({ at: job.finishedOn ?? 0, read: async () => toDeadLetter(job) })),
    ].sort((a, b) => b.at - a.at)
    const found = await Promise.all(letters.slice(offset - first, offset - first + limit).map(({ read }) => read()))
    return found.filter((letter) => letter !== undefined)
  }

  async keys(options?: KeysOptions): Promise<readonly string[]> {
    const matches = matching(options)
    const ids = await this.#queue.reach((jobs) => jobs.getRanges(['failed'], 0, -1, true))
    const failed = await inBatches(ids, async (id) => {
      const job = await this.#queue.reach((jobs) => jobs.getJob(id))
      // The job may have been removed meanwhile.
      const letter = job && toDeadLetter(job)
      return letter && matches(letter) ? { key: letter.key, at: letter.diedAt.getTime() } : undefined
    })
    const order = new Map(await this.#unreadable.order())
    const unreadable = await inBatches([...order.keys()], async (key) => {
      const letter = await this.#unreadable.get(key)
      return letter && matches(unreadableLetter(letter)) ? { key, at: order.get(key) as number } : undefined
    })
    return [...failed, ...unreadable].sort((a, b) => a.at - b.at).map(({ key }) => key)
  }

  replayMany(keys: readonly string[]): Promise<readonly string[]> {
    return inBatches(keys, async (key) => ((await this.replay(key)) ? key : undefined))
  }

  discardMany(keys: readonly string[]): Promise<readonly string[]> {
    return inBatches(keys, async (key) => ((await this.discard(key)) ? key : undefined))
  }

  async get(key: string): Promise<DeadLetter | undefined> {
    const job = await this.#find(key)
    if (job !== undefined) return toDeadLetter(job)
    const unreadable = await this.#unreadable.get(key)
    return unreadable && unreadableLetter(unreadable)
  }

  async replay(key: string): Promise<boolean> {
    const job = await this.#find(key)
    if (job !== undefined) return this.#queue.revive(job)
    const unreadable = await this.#unreadable.get(key)
    return unreadable !== undefined && (await this.#replayUnreadable(unreadable))
  }

  replayAll(options?: ReplayAllOptions): Promise<ReplayReport> {
    return replayAll(this, options, () => this.keys(options))
  }

  /** Adds the event, then removes the delivery. After a crash in between, the next replay finds the event known. */
  async #replayUnreadable(data: UnreadableData): Promise<boolean> {
    if (this.#receiver === undefined) await this.#queue.addUnreadable(data, data.key)
    else await addParsed(this.#queue, this.#receiver, data, this.#ttlMs)
    return this.#unreadable.remove(data.key, data)
  }

  async discard(key: string): Promise<boolean> {
    const job = await this.#find(key)
    // An unreadable delivery that arrives again is kept again.
    if (job === undefined) return this.#unreadable.remove(key)
    return isEvent(job.data) && (await this.#queue.discard(job, job.data.event, this.#ttlMs))
  }

  async #find(key: string): Promise<EventJob | undefined> {
    const job = await this.#queue.find(key)
    if (job === undefined) return undefined
    return (await this.#queue.reach(() => job.isFailed())) ? job : undefined
  }
}

/**
 * Adds an unreadable delivery's events, unless they are known.
 * @throws WebhookError `malformed`
 */
async function addParsed(
  queue: EventQueue,
  receiver: AcceptingReceiver,
  data: UnreadableData,
  ttlMs: number,
): Promise<void> {
  for (const accepted of await parseAgain(receiver, toUnreadable(data)))
    await addEvent(queue, receiver, { ...accepted, since: new Date() }, ttlMs)
}

/** Finishes the replay by a process without a receiver: adds the delivery's event, or keeps the delivery again. */
export async function parseOrKeep(
  queue: EventQueue,
  receiver: AcceptingReceiver,
  data: UnreadableData,
  ttlMs: number,
): Promise<void> {
  const kept = new KeptUnreadable(queue)
  try {
    await addParsed(queue, receiver, data, ttlMs)
    await kept.remove(data.key)
  } catch (error) {
    if (!(error instanceof WebhookError && error.code === 'malformed')) throw error
    await kept.keepAgain(data, error.message)
  }
}
