import { Agent, request } from 'node:http'
import { makeDelivery } from '../../../src/testing/deliver.ts'
import { encodePayload, samplePayload } from '../../../src/testing/index.ts'
import { sign } from '../../conformance/sending.ts'

/** The answers that a sender at full speed got. */
export interface Load {
  /** Media ids of the deliveries that were answered 200. */
  readonly acknowledged: Set<string>
  /** Returns how many deliveries were rejected, or got no answer. */
  readonly rejected: () => number
  stop(): Promise<void>
}

/** Makes signed deliveries, each of an event of its own, to one receiver after another. */
export function startLoad(urls: () => readonly string[], callers = 16): Load {
  const acknowledged = new Set<string>()
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  let rejected = 0
  let stopped = false

  const caller = async () => {
    while (!stopped) {
      const all = urls()
      const url = all[Math.floor(Math.random() * all.length)]
      const mediaId = crypto.randomUUID()
      if (url !== undefined && (await statusOf(url, mediaId, agent)) === 200) acknowledged.add(mediaId)
      else {
        rejected++
        // A sender pauses before it tries again.
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
  }
  const callersDone = Promise.all(Array.from({ length: callers }, caller))

  return {
    acknowledged,
    rejected: () => rejected,
    async stop() {
      stopped = true
      await callersDone
      agent.destroy()
    },
  }
}

/** Makes a delivery and returns the status of the answer, 0 where there was none. */
async function statusOf(url: string, mediaId: string, agent: Agent): Promise<number> {
  const body = encodePayload(samplePayload('encoding.finished', { media_id: mediaId }))
  const delivery = await makeDelivery(body, { url, sign })
  const headers = Object.fromEntries(delivery.headers as Headers)
  return new Promise((resolve) => {
    const post = request(url, { method: 'POST', headers, agent }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
      answer.on('error', () => resolve(0))
    })
    post.on('error', () => resolve(0))
    post.end(body)
  })
}
