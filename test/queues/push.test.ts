import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as upstash from '@upstash/qstash'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type QueueMessage, queueInbox } from '../../src/inbox/queue.ts'
import { createReceiver, lruStore, type Receiver, unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { exportsOf } from '../docs/written-out.ts'
import { silent } from '../support/silent.ts'

// The endpoints that docs/queues.md shows, for queues that post their messages.

afterEach(() => {
  vi.unstubAllEnvs()
})

/** A receiver whose handler throws as often as it is told, and the titles that it handled. */
function setUp(send: (message: QueueMessage) => unknown, failures = 0) {
  const titles: (string | undefined)[] = []
  let left = failures
  const receiver = createReceiver({
    verify: unverified(),
    inbox: queueInbox({ send, store: lruStore() }),
    logger: silent,
  }).onAny(({ title }) => {
    if (left-- > 0) throw new Error('as asked')
    titles.push(title)
  })
  return { receiver, titles }
}

const film = samplePayload('encoding.finished', { title: '映画 🎬.mp4' })

describe('the endpoint for Google Pub/Sub', () => {
  const [audience, account] = ['https://example.com/push', 'pubsub@example.iam.gserviceaccount.com']

  class OAuth2Client {
    async verifyIdToken({ idToken, audience: asked }: { idToken: string; audience: string }) {
      if (idToken === 'forged' || asked !== audience) throw new Error('wrong signature')
      return { getPayload: () => ({ email: idToken, email_verified: true }) }
    }
  }
  const { push } = exportsOf('queues', 'pubsub-push', { 'google-auth-library': { OAuth2Client } }) as {
    push(receiver: Receiver, request: Request, audience: string, account: string): Promise<Response>
  }

  /** A receiver, and a function that posts its message as Pub/Sub does. */
  async function subscription(failures = 0) {
    const sent: QueueMessage[] = []
    const { receiver, titles } = setUp((message) => sent.push(message), failures)
    await deliver(receiver, film)
    const data = Buffer.from(JSON.stringify(sent[0])).toString('base64')
    const post = async (fields: { deliveryAttempt?: number } = {}, token = account) => {
      const message = { data, attributes: {}, messageId: '1', message_id: '1', publishTime: new Date().toISOString() }
      const body = JSON.stringify({ message, subscription: 'projects/p/subscriptions/s', ...fields })
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      return (await push(receiver, new Request(audience, { method: 'POST', headers, body }), audience, account)).status
    }
    return { post, titles }
  }

  test('acknowledges a message that is done, and a duplicate without handling it again', async () => {
    const { post, titles } = await subscription()
    expect([await post(), await post({ deliveryAttempt: 2 })]).toEqual([204, 204])
    expect(titles).toEqual(['映画 🎬.mp4'])
  })

  test('has a message that failed delivered again', async () => {
    const { post, titles } = await subscription(1)
    expect([await post({ deliveryAttempt: 1 }), await post({ deliveryAttempt: 2 })]).toEqual([503, 204])
    expect(titles).toHaveLength(1)
  })

  test.each(['forged', 'somebody-else@example.com', ''])('rejects a request with the token %j', async (token) => {
    const { post, titles } = await subscription()
    expect(await post({}, token)).toBe(401)
    expect(titles).toEqual([])
  })
})

describe('the endpoint for QStash', () => {
  const url = 'https://example.com/consume'
  const base64 = (content: string | Buffer) => Buffer.from(content as string).toString('base64url')

  /** Signs a body as QStash does: a JWT about its URL and its hash. */
  function sign(body: string, key = 'a-signing-key'): string {
    const now = Math.floor(Date.now() / 1_000)
    const claims = {
      iss: 'Upstash',
      sub: url,
      iat: now,
      nbf: now - 1,
      exp: now + 300,
      jti: 'jwt',
      body: createHash('sha256').update(body).digest('base64url'),
    }
    const text = `${base64(JSON.stringify({ alg: 'HS256', typ: 'JWT' }))}.${base64(JSON.stringify(claims))}`
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  }

  /** A server that takes what the SDK publishes, and the endpoint of the page. */
  async function qstash(failures = 0) {
    const published: { url: string; body: string; headers: Record<string, unknown> }[] = []
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      published.push({ url: request.url ?? '', body, headers: request.headers })
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"messageId":"1"}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close().closeAllConnections())
    vi.stubEnv('QSTASH_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    vi.stubEnv('QSTASH_TOKEN', 'a-token')
    vi.stubEnv('QSTASH_CURRENT_SIGNING_KEY', 'a-signing-key')
    vi.stubEnv('QSTASH_NEXT_SIGNING_KEY', 'the-next-key')
    vi.stubEnv('CONSUMER_URL', url)
    const { send, consume } = exportsOf('queues', 'qstash', { '@upstash/qstash': upstash }) as {
      send(message: QueueMessage): Promise<unknown>
      consume(receiver: Receiver, request: Request): Promise<Response>
    }
    const { receiver, titles } = setUp(send, failures)
    const acknowledgement = await deliver(receiver, film)
    const post = (body: string, retried: number, key?: string) => {
      const headers = { 'upstash-signature': sign(body, key), 'upstash-retried': `${retried}` }
      return consume(receiver, new Request(url, { method: 'POST', headers, body }))
    }
    const [{ body = '' } = {}] = published
    return { acknowledgement, published, body, post, titles }
  }

  test('handles what was published with the SDK, once', async () => {
    const { acknowledgement, published, body, post, titles } = await qstash()
    expect(acknowledgement.status).toBe(200)
    expect(published).toMatchObject([
      {
        url: `/v2/publish/${url}`,
        headers: {
          'upstash-deduplication-id': expect.stringMatching(/^[0-9a-f]{64}$/),
          'upstash-retries': '4',
          'content-type': 'application/json',
        },
      },
    ])
    expect((await post(body, 0)).status).toBe(200)
    expect((await post(body, 1)).status).toBe(200)
    expect(titles).toEqual(['映画 🎬.mp4'])
  })

  test('asks for another delivery after the pause, and for none after the last attempt', async () => {
    const { body, post } = await qstash(5)
    const answers = [await post(body, 0), await post(body, 1), await post(body, 2), await post(body, 3)]
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503])
    for (const { headers } of answers) expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(0)
    const last = await post(body, 4)
    expect([last.status, last.headers.get('upstash-nonretryable-error')]).toEqual([489, 'true'])
  })

  test('takes the next signing key, and rejects any other signature', async () => {
    const { body, post, titles } = await qstash()
    expect((await post(body, 0, 'a-guess')).status).toBe(401)
    expect((await post(`${body} `, 0, 'the-next-key')).status).toBe(200)
    expect(titles).toHaveLength(1)
  })
})
