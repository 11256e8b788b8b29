import { Agent, request } from 'node:http'
import { makeDelivery } from '../../../../src/testing/deliver.ts'
import { freshBody, sign } from '../../../conformance/sending.ts'

/** Makes a sender that delivers at full speed and remembers which deliveries were acknowledged. */
export function floodingSender(connections: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const acknowledged = new Set<string>()
  const sent: string[] = []
  let rejected = 0

  async function deliver(url: string, mediaId: string): Promise<boolean> {
    const body = freshBody({ media_id: mediaId })
    const { headers } = await makeDelivery(body, { url, sign })
    const status = await post(agent, url, Object.fromEntries(headers as Headers), body)
    if (status === 200) acknowledged.add(mediaId)
    else rejected++
    return status !== 0
  }

  // One delivery in ten is a duplicate, of an acknowledged one or of one that a kill cut off.
  const next = () => {
    const earlier = Math.random() < 0.1 ? sent.at(-1 - Math.floor(Math.random() * 50)) : undefined
    if (earlier !== undefined) return earlier
    const mediaId = crypto.randomUUID()
    sent.push(mediaId)
    return mediaId
  }

  return {
    acknowledged,
    sent,
    rejected: () => rejected,
    /** Sends over all connections until the receiver has ended. */
    async flood(url: string) {
      const stream = async () => {
        while (await deliver(url, next()));
      }
      await Promise.all(Array.from({ length: connections }, stream))
    },
    close: () => agent.destroy(),
  }
}

/** Posts a delivery and returns the status of the answer, 0 when there was none. */
const post = (agent: Agent, url: string, headers: Record<string, string>, body: Uint8Array): Promise<number> =>
  new Promise((resolve) => {
    const sending = request(url, { agent, method: 'POST', headers }, (response) => {
      response.on('error', () => resolve(0))
      response.on('end', () => resolve(response.statusCode ?? 0))
      response.resume()
    })
    sending.on('error', () => resolve(0))
    sending.end(body)
  })
