import { Agent, request } from 'node:http'
import { makeDelivery } from '../../../src/testing/deliver.ts'
import { encodePayload, samplePayload } from '../../../src/testing/index.ts'
import { sign } from '../../conformance/sending.ts'

/** What a sender at full speed has seen. */
export interface Load {
  /** Media ids of the deliveries that were answered 200. */
  readonly acknowledged: Set<string>
  /** Deliveries that were refused, or got no answer. */
  readonly refused: () => number
  stop(): Promise<void>
}

/** Makes signed deliveries, each of an event of its own, to one receiver after another. */
export function startLoad(urls: () => readonly string[], callers = 16): Load {
  const acknowledged = new Set<string>()
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  let refused = 0
  let stopped = false

  const caller = async () => {
    while (!stopped) {
      const all = urls()
      const url = all[Math.floor(Math.random() * all.length)]
      const mediaId = crypto.randomUUID()
      if (url !== undefined && (await statusOf(url, mediaId, agent)) === 200) acknowledged.add(mediaId)
      else {
        refused++
        // A sender that was refused does not hammer.
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
  }
  const callersDone = Promise.all(Array.from({ length: callers }, caller))

  return {
    acknowledged,
    refused: () => refused,
    async stop() {
      stopped = true
      await callersDone
      agent.destroy()
    },
  }
}

/** The status of a delivery; 0 where there was no answer. */
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
