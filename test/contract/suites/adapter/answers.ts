import { defineSender } from '../../../../src/events/define-sender.ts'
import type { Inbox } from '../../../../src/inbox/inbox.ts'
import { encoder } from '../../../../src/internal/utf8.ts'
import type { ReceiverOptions } from '../../../../src/receiver/options.ts'
import { makeDelivery } from '../../../../src/testing/deliver.ts'
import type { Runner } from '../../../../src/testing/runner.ts'
import { encodePayload, samplePayload } from '../../../../src/testing/samples.ts'
import { signWithBasicAuth, signWithHmac, signWithUrlToken } from '../../../../src/testing/signers.ts'
import { basicAuth } from '../../../../src/verify/basic-auth.ts'
import { hmacSignature } from '../../../../src/verify/hmac-signature.ts'
import { urlToken } from '../../../../src/verify/url-token.ts'
import type { Answer, Fields } from './connection.ts'
import { type Fixture, fixtures, freshBody, type MountAdapter } from './fixture.ts'

/** How to cause an outcome, and the expected answer. */
interface Row {
  readonly outcome: string
  readonly status: number
  readonly options?: () => Partial<ReceiverOptions>
  readonly deliver?: (fixture: Fixture) => Promise<Answer>
  readonly headers?: Readonly<Record<string, string>>
}

/** Options for an inbox that answers every event with `accept`. */
const inboxThat = (accept: Inbox['accept']) => (): Partial<ReceiverOptions> => ({
  inbox: {
    name: 'inboxThat',
    open: () => ({
      accept,
      close: async () => ({ unfinished: [] }),
      stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 }),
      deadLetters: { list: () => [], get: () => undefined, replay: () => false, discard: () => false },
    }),
  },
})

const failing = (): Promise<never> => Promise.reject(new Error('not for the sender'))
const retryAfter = { 'retry-after': '3' }
const plain = { fields: [['Content-Type', 'text/plain']] } as const

const rows: readonly Row[] = [
  { outcome: 'accepted', status: 200 },
  { outcome: 'duplicate', status: 200, deliver: twice },
  { outcome: 'ignored', status: 200, deliver: ({ post }) => post(encodePayload(samplePayload('file.received'))) },
  { outcome: 'handled', status: 200, options: () => ({ ack: 'handled' }) },
  { outcome: 'unauthorized', status: 401, options: () => ({ verify: urlToken({ secret: 'secret' }) }) },
  { outcome: 'malformed', status: 400, deliver: ({ post }) => post(encoder.encode('[1]')) },
  {
    outcome: 'method_not_allowed',
    status: 405,
    deliver: ({ post }) => post(freshBody(), { method: 'PUT' }),
    headers: { allow: 'POST' },
  },
  { outcome: 'unsupported_media_type', status: 415, deliver: ({ post }) => post(freshBody(), plain) },
  { outcome: 'too_large', status: 413, options: () => ({ maxBodyBytes: 10 }) },
  { outcome: 'overloaded', status: 503, options: inboxThat(() => 'overloaded'), headers: retryAfter },
  { outcome: 'unavailable', status: 503, options: inboxThat(failing), headers: retryAfter },
  { outcome: 'closing', status: 503, deliver: afterClose, headers: retryAfter },
  {
    outcome: 'handler_failed',
    status: 500,
    options: () => ({ ack: 'handled', handlers: { 'encoding.finished': failing } }),
  },
  { outcome: 'internal', status: 500, options: () => ({ eventKey: () => '' }) },
]

async function twice({ post }: Fixture): Promise<Answer> {
  const body = freshBody()
  await post(body)
  return post(body)
}

async function afterClose({ receiver, post }: Fixture): Promise<Answer> {
  await receiver.close()
  return post(freshBody())
}

/** A sender that makes sure of the URL. */
const echoing = defineSender({
  name: 'echoing',
  events: { any: { '~standard': { version: 1, vendor: 'none', validate: (value) => ({ value }) } } },
  read: () => undefined,
  challenge: ({ method, query }) => (method === 'GET' ? query.get('challenge') : undefined),
})

export function answers(mount: MountAdapter, { test, expect }: Runner): void {
  const check = fixtures(mount, { test })

  check(
    'answers a handshake by GET with its text, which is no page and kept by nobody',
    async ({ url }) => {
      const answer = await fetch(`${url}?challenge=${encodeURIComponent('<b>é</b>')}`)
      expect([answer.status, await answer.text()]).toEqual([200, '<b>é</b>'])
      const headers = ['content-type', 'x-content-type-options', 'cache-control'].map((name) =>
        answer.headers.get(name),
      )
      expect(headers).toEqual(['text/plain; charset=utf-8', 'nosniff', 'no-store'])
    },
    () => ({ sender: echoing as never, handlers: {} }),
  )

  for (const { outcome, status, options, deliver, headers = {} } of rows) {
    const run = async (fixture: Fixture) => {
      const answer = await (deliver ?? (({ post }) => post(freshBody())))(fixture)
      const { code, status: word, message } = JSON.parse(answer.body)
      expect(answer.status).toBe(status)
      expect(status === 200 ? word : code).toBe(outcome)
      expect([word === 'error', typeof message]).toEqual(status === 200 ? [false, 'undefined'] : [true, 'string'])
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(answer.headers.get('content-length')).toBe(String(encoder.encode(answer.body).byteLength))
      for (const [name, value] of Object.entries(headers)) expect(answer.headers.get(name)).toBe(value)
      expect(fixture.outcomes.at(-1)).toBe(outcome)
    }
    check(`answers ${outcome} with ${status}`, run, options)
  }

  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    check(`answers ${method} with 405 and names the allowed method`, async ({ post, handled }) => {
      const answer = await post(new Uint8Array(), { method })
      expect([answer.status, answer.headers.get('allow'), handled.length]).toEqual([405, 'POST', 0])
    })
  }

  check('answers HEAD without a body, which the next answer on the connection would follow', async (fixture) => {
    const connection = await fixture.connect()
    expect((await fixture.send(connection, new Uint8Array(), { method: 'HEAD' })).status).toBe(405)
    expect((await fixture.send(connection, freshBody())).status).toBe(200)
  })

  const token = { secret: 'a secret/with?reserved&characters', parameter: 'key' }
  check(
    'shows the verifier the URL as it was sent',
    async ({ post }) => expect((await post(freshBody(), { sign: signWithUrlToken(token) })).status).toBe(200),
    () => ({ verify: urlToken(token) }),
  )

  // An adapter that picks the first or the last duplicate would let a sender slip one past a proxy that checks the
  // other.
  const credentials = { username: 'media', password: 'pässword' }
  const hmac = { secret: 'secret', header: 'x-signature' }
  const wrong = { authorization: `Basic ${btoa('media:wrong')}`, 'x-signature': '00'.repeat(32) }
  for (const [header, verify, sign] of [
    ['authorization', basicAuth(credentials), signWithBasicAuth(credentials)],
    ['x-signature', hmacSignature(hmac), signWithHmac(hmac)],
  ] as const) {
    const run = async ({ post, handled }: Fixture) => {
      const body = freshBody()
      const signed = await makeDelivery(body, { sign })
      const right: Fields[number] = [header, signed.headers.get(header) ?? '']
      const second: Fields[number] = [header, wrong[header]]
      expect((await post(body, { fields: [right, second] })).status).toBe(401)
      expect((await post(body, { fields: [second, right] })).status).toBe(401)
      expect(handled.length).toBe(0)
      expect((await post(body, { fields: [right] })).status).toBe(200)
    }
    check(`rejects a delivery that sends ${header} twice`, run, () => ({ verify }))
  }
}
