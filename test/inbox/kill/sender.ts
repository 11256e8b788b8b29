import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeDelivery } from '../../../src/testing/deliver.ts'
import { encodePayload, samplePayload } from '../../../src/testing/index.ts'
import { sign } from '../../conformance/sending.ts'
import { oneOf } from '../../support/seeded.ts'

/** Maximum wait for acknowledgements, in ms. */
const stuckMs = 30_000

export interface SenderOptions {
  /** Returns the URLs of the receivers that run now. Without any, the sender waits. */
  readonly urls: () => readonly string[]
  /** @see seeded */
  readonly random: () => number
  readonly connections: number
}

/** Makes signed deliveries at full speed and remembers which media were acknowledged. One in ten is a duplicate. */
export class Sender {
  /** The media ids of the deliveries that were answered 200. */
  readonly acknowledged = new Set<string>()
  /** Deliveries that were rejected, or got no answer. */
  rejected = 0
  #sent = 0
  #stopped = false
  readonly #agent: Agent
  readonly #options: SenderOptions
  readonly #ended: Promise<unknown>

  constructor(options: SenderOptions) {
    this.#options = options
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connections })
    this.#ended = Promise.all(Array.from({ length: options.connections }, () => this.#call()))
  }

  async #call(): Promise<void> {
    const { urls, random } = this.#options
    while (!this.#stopped) {
      const running = urls()
      const mediaId = running.length > 0 && this.#nextMedia()
      const status = mediaId ? await this.#post(oneOf(random, running), mediaId) : 0
      if (mediaId && status === 200) this.acknowledged.add(mediaId)
      else {
        if (mediaId) this.rejected++
        // A sender pauses before it tries again.
        await sleep(5)
      }
    }
  }

  /** A new media item, or one of the last fifty: it was acknowledged, or a kill cut off its delivery. */
  #nextMedia(): string {
    const { random } = this.#options
    const isDuplicate = random() < 0.1
    const back = 1 + Math.floor(random() * 50)
    return `media-${isDuplicate ? Math.max(0, this.#sent - back) : this.#sent++}`
  }

  async #post(url: string, mediaId: string): Promise<number> {
    const body = encodePayload(samplePayload('encoding.finished', { media_id: mediaId }))
    const { headers } = await makeDelivery(body, { url, sign })
    return new Promise((resolve) => {
      const options = { method: 'POST', headers: Object.fromEntries(headers as Headers), agent: this.#agent }
      const post = request(url, options, (answer) => {
        answer.on('error', () => resolve(0))
        answer.on('end', () => resolve(answer.statusCode ?? 0))
        answer.resume()
      })
      post.on('error', () => resolve(0))
      post.end(body)
    })
  }

  /** Waits until so many more events are acknowledged: how long that takes depends on the machine. */
  async acknowledgesMore(count: number): Promise<void> {
    const enough = this.acknowledged.size + count
    for (const endsAt = Date.now() + stuckMs; this.acknowledged.size < enough && Date.now() < endsAt; ) await sleep(10)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#ended
    this.#agent.destroy()
  }
}
