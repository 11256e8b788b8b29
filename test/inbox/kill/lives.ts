import { setTimeout as sleep } from 'node:timers/promises'
import { encodePayload, samplePayload } from '../../../src/testing/index.ts'
import { send } from '../../conformance/sending.ts'
import { oneOf } from '../../support/seeded.ts'
import { withinMs } from './expect-ends.ts'

const fileReceived = (mediaId: string) => samplePayload('file.received', { media_id: mediaId })
const encoded = (mediaId: string) => samplePayload('encoding.finished', { media_id: mediaId })

interface Life {
  readonly mediaId: string
  /** The deadline is `withinMs` after this time, or later. In ms since the epoch. */
  readonly beganAt: number
  /** The time at which its end was acknowledged. */
  endedAt?: number
}

export interface LivesOptions {
  /** Returns the URLs of the receivers that run now. Without any, the sender waits. */
  readonly urls: () => readonly string[]
  /** @see seeded */
  readonly random: () => number
}

/** Sends the lives of media items. Half of them never end, and some end about when the deadline passes. */
export class Lives {
  readonly #options: LivesOptions
  readonly #begun: Life[] = []
  readonly #ended: Promise<unknown>
  #next = 0
  #hasStopped = false

  constructor(options: LivesOptions) {
    this.#options = options
    this.#ended = Promise.all(Array.from({ length: 12 }, () => this.#sendLives()))
  }

  async #sendLives(): Promise<void> {
    const { random } = this.#options
    while (!this.#hasStopped) {
      const life: Life = { mediaId: `media-${this.#next++}`, beganAt: Date.now() }
      await this.#deliver(fileReceived(life.mediaId))
      this.#begun.push(life)
      if (random() < 0.5) continue
      await sleep(random() * (random() < 0.5 ? 50 : 1.2 * withinMs))
      await this.#deliver(encoded(life.mediaId))
      life.endedAt = Date.now()
      if (random() < 0.1) await this.#deliver(fileReceived(life.mediaId))
    }
  }

  /** Sends a delivery until it is acknowledged. */
  async #deliver(payload: ReturnType<typeof fileReceived>): Promise<void> {
    const { urls, random } = this.#options
    for (;;) {
      const running = urls()
      const answer =
        running.length > 0 && (await send(oneOf(random, running), encodePayload(payload)).catch(() => false as const))
      if (answer && answer.status === 200) return
      await sleep(5)
    }
  }

  /** The number of lives that have begun. */
  get size(): number {
    return this.#begun.length
  }

  /** Finishes the lives that have begun. */
  async stop(): Promise<void> {
    this.#hasStopped = true
    await this.#ended
  }

  /** Returns the reasons why these reports do not show that each life without an end was reported once, and no other. */
  faults(reported: readonly string[]): readonly string[] {
    const times = new Map<string, number>()
    for (const mediaId of reported) times.set(mediaId, (times.get(mediaId) ?? 0) + 1)
    const faultOf = ({ mediaId, beganAt, endedAt }: Life): string | undefined => {
      const reports = times.get(mediaId) ?? 0
      if (reports > 1) return `${mediaId} was reported ${reports} times`
      if (endedAt === undefined && reports === 0) return `${mediaId} did not end, and was not reported`
      const ms = endedAt && endedAt - beganAt
      if (ms !== undefined && ms < withinMs && reports === 1) return `${mediaId} ended after ${ms} ms, and was reported`
      return undefined
    }
    return this.#begun.map(faultOf).filter((fault) => fault !== undefined)
  }
}
