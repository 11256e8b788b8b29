import { createHmac } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type AnySender, createReceiver, type Delivery, unverified, type Verifier } from '../../src/index.ts'
import { type SigningOptions, signerFor } from '../../src/service/emulator/sending/signing.ts'
import { makeDelivery, samplePayload } from '../../src/testing/index.ts'
import { blocksOf, pageOf } from '../docs/pages.ts'
import { postJson } from '../support/post-json.ts'
import { silent } from '../support/silent.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { faultsIn, run } from './compiled.ts'
import { finish, start } from './program.ts'

const secret = 'c2VjcmV0LW9mLXRoZS10ZXN0'

/** A service as it signs and what it sends. */
interface Service {
  readonly sign: SigningOptions
  readonly headers?: Readonly<Record<string, string>>
  readonly body: object
  /** The body as it is sent, if that is not JSON. */
  readonly text?: string
  /** What the generated sender reads. */
  readonly read: { readonly type: string; readonly mediaId: string; readonly emittedAt?: Date; readonly key?: string }
}

const services: Readonly<Record<string, Service>> = {
  Mux: {
    sign: { scheme: 'timestamped-signature', secret, header: 'mux-signature' },
    body: {
      type: 'video.asset.ready',
      request_id: null,
      object: { type: 'asset', id: 'asset-00b7' },
      id: '03a81509-049a-4c46-bc39-113e9b6638d4',
      environment: { name: 'Development of Ana', id: 'abc123' },
      data: {
        id: 'asset-00b7',
        status: 'ready for Ana',
        duration: 61.25,
        playback_ids: [
          { id: 'playback-7', policy: 'public to all' },
          { id: 'playback-8', policy: null },
        ],
        tracks: [],
      },
      created_at: '2026-03-01T12:04:18.000000Z',
      attempts: [],
    },
    read: {
      type: 'video.asset.ready',
      mediaId: 'asset-00b7',
      emittedAt: new Date('2026-03-01T12:04:18Z'),
      key: '03a81509-049a-4c46-bc39-113e9b6638d4',
    },
  },
  'Cloudflare Stream': {
    sign: { scheme: 'timestamped-signature', secret, header: 'webhook-signature', time: 'time', signature: 'sig1' },
    body: {
      uid: 'video-6b9e68b0',
      readyToStream: true,
      status: { state: 'all ready', pctComplete: '39.000000' },
      meta: { filename: 'small.mp4' },
      modified: '2026-03-01T12:04:18.774299Z',
    },
    read: { type: 'unknown', mediaId: 'video-6b9e68b0', emittedAt: new Date('2026-03-01T12:04:18.774Z') },
  },
  GitHub: {
    sign: { scheme: 'hmac-signature', secret, header: 'x-hub-signature-256', prefix: 'sha256=' },
    headers: { 'x-github-event': 'issues', 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' },
    body: {
      action: 'opened',
      issue: { id: 73464126, title: 'Spelling error', labels: [{ name: 'bug of Ana' }], assignee: null },
      repository: { id: 35129377, full_name: 'ana/public-repo' },
    },
    read: { type: 'issues', mediaId: 'unknown', key: '72d3162e-cc78-11e3-81ab-4c9367dc0958' },
  },
  Shopify: {
    sign: { scheme: 'hmac-signature', secret, header: 'x-shopify-hmac-sha256', encoding: 'base64' },
    headers: { 'x-shopify-topic': 'orders/create', 'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043' },
    body: {
      id: 5678901234567,
      email: 'ana@example.com',
      created_at: '2021-12-31T19:00:00-05:00',
      updated_at: '2022-12-31T19:00:00-05:00',
      note_attributes: [],
      line_items: [{ id: 866550311, title: 'Holiday on film', price_set: { shop_money: { amount: '199.00' } } }],
    },
    read: {
      type: 'orders/create',
      mediaId: '5678901234567',
      emittedAt: new Date('2023-01-01T00:00:00Z'),
      key: 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
    },
  },
  'an encoder': {
    sign: { scheme: 'hmac-signature', secret, header: 'x-signature' },
    body: { event: 'job.done', video_id: 'film-of-ana', 'bit-rates': [1.5, 'auto detected'], at: 1772366658, ok: true },
    read: { type: 'job.done', mediaId: 'film-of-ana', emittedAt: new Date('2026-03-01T12:04:18Z') },
  },
  Clerk: {
    sign: { scheme: 'standard-webhooks', secret, headers: 'svix' },
    body: { type: 'user.created', object: 'event-of-ana', data: { id: 'user_29w83sxmDNGwOuEthce5gg56FcC' } },
    read: { type: 'user.created', mediaId: 'user_29w83sxmDNGwOuEthce5gg56FcC', key: 'msg_1' },
  },
  'a service of lists': {
    sign: { scheme: 'hmac-signature', secret, header: 'x-signature' },
    body: [
      { event: 'delivered', event_id: 'event-of-ana', video_id: 'film-of-ana', timestamp: 1772366658 },
      {
        event: 'delivered',
        event_id: 'event-of-ben',
        video_id: 'film-of-ben',
        timestamp: 1772366659,
        reason: 'mailbox full',
      },
    ],
    read: {
      type: 'delivered',
      mediaId: 'film-of-ana',
      key: 'event-of-ana',
      emittedAt: new Date('2026-03-01T12:04:18Z'),
    },
  },
  'a service of forms': {
    sign: { scheme: 'hmac-signature', secret, header: 'x-signature' },
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: { event: 'call.ended', video_id: 'call-of-ana' },
    text: 'event=call.ended&video_id=call-of-ana&From=%2B14158675309',
    read: { type: 'call.ended', mediaId: 'call-of-ana' },
  },
  'a service of plain text': {
    sign: { scheme: 'hmac-signature', secret, header: 'x-signature' },
    headers: { 'content-type': 'text/plain; charset=UTF-8' },
    body: { type: 'Notification', event_id: 'message-of-ana', asset_id: 'asset-of-ana' },
    read: { type: 'Notification', mediaId: 'asset-of-ana', key: 'message-of-ana' },
  },
  Slack: {
    sign: {
      ...{ scheme: 'hmac-signature', secret, header: 'x-slack-signature', prefix: 'v0=' },
      ...{ timestampHeader: 'x-slack-request-timestamp', signed: 'v0:{timestamp}:{body}' },
    },
    body: {
      type: 'event_callback',
      event_id: 'Ev08MFMKH6',
      payload: null,
      event: { type: 'file shared', file_id: 'F0' },
    },
    read: { type: 'event_callback', mediaId: 'unknown', key: 'Ev08MFMKH6' },
  },
}

async function listen(args: readonly string[] = []) {
  const program = start(['listen', '--port', '0', '--json', ...args], { MEDIA_WEBHOOKS_SECRET: secret })
  const { url } = JSON.parse(await program.line(/"url"/))
  const post = async (body: object | string, headers: Readonly<Record<string, string>> = {}) =>
    (await postJson(url, body, headers)).status
  let count = 0
  return {
    program,
    post,
    /** Posts a body, and returns what was printed about it. */
    async teach(body: object | string, headers?: Readonly<Record<string, string>>) {
      expect(await post(body, headers)).toBe(200)
      return JSON.parse((await program.lines(/^{"at"/, ++count))[count - 1] as string)
    },
  }
}

const signed = async ({ sign, headers, body, text = JSON.stringify(body) }: Omit<Service, 'read'>) => {
  const delivery = await makeDelivery(text, { headers, sign: signerFor(sign, 'msg_1') })
  return { ...delivery, body: new TextEncoder().encode(text) }
}

/** Makes a receiver of a generated module, gives it a delivery, and returns the outcome and the event. */
async function receive(code: string, delivery: Delivery) {
  const { sender, verify = unverified() } = run(code, { MEDIA_WEBHOOKS_SECRET: secret }) as unknown as Generated
  const receiver = createReceiver({ sender, verify, logger: silent })
  onTestFinished(async () => void (await receiver.close()))
  const events: unknown[] = []
  receiver.onAny((event) => void events.push(event))
  const { outcome } = await receiver.receive(delivery)
  await receiver.close()
  return { outcome, event: events[0] }
}

interface Generated {
  readonly sender: AnySender
  readonly verify?: Verifier
}

const codes: string[] = []

/** Texts and numbers anywhere in a body, except what may be printed. */
const valuesIn = (value: unknown): string[] =>
  typeof value === 'object' && value !== null ? Object.values(value).flatMap(valuesIn) : [String(value)]

const hostile = [
  ...["it's", '"', '`', `\${process.exit()}`, '*/ process.exit() /*', 'a\nb', 'a\u2028b', '\\', '</script>', 'a: 1, b'],
  ...['constructor', 'prototype', 'toString', 'a-b', '$ref', '@type', 'default', ''],
]

describe('of another service, listen', () => {
  test.each(Object.entries(services))(
    'writes a sender and a verifier for %s that accept the delivery',
    async (_, service) => {
      const { program, teach } = await listen()
      const delivery = await signed(service)
      const taught = await teach(delivery.body, Object.fromEntries(delivery.headers as Headers))
      codes.push(taught.sender)
      expect(taught.sender).toContain('export const verify = ')

      const { outcome, event } = await receive(taught.sender, delivery)
      expect(outcome).toBe('accepted')
      expect(event).toMatchObject({ ...service.read, issues: [] })
      expect(await receive(taught.sender, { ...delivery, body: new TextEncoder().encode('{}') })).toMatchObject({
        outcome: 'unauthorized',
      })
      const values = valuesIn(service.body).filter((value) => value.length > 5 && value !== service.read.type)
      for (const value of values) expect(program.output()).not.toContain(value)
    },
  )

  test('names the fields with their types, and never prints a value', async () => {
    const { teach } = await listen()
    const { fields, sender, event } = await teach(services['Mux']?.body ?? {})
    expect(event).toEqual({ type: 'video.asset.ready' })
    expect(fields).toEqual([
      'type: string',
      'request_id: null',
      'object.type: string',
      'object.id: string',
      'id: string',
      'environment.name: string',
      'environment.id: string',
      'data.id: string',
      'data.status: string',
      'data.duration: number',
      'data.playback_ids[].id: string',
      'data.playback_ids[].policy: string | null',
      'data.tracks: array',
      'created_at: string',
      'attempts: array',
    ])
    expect(sender).toContain(`
export const sender = defineSender({
  name: 'my-service', // TODO: the name of the service, for logs and errors
  events: {
    'video.asset.ready': z.object({
      id: z.string(),
      status: z.string(),
      duration: z.number(),
      playback_ids: z.array(z.object({
        id: z.string(),
        policy: z.string().nullish(),
      })),
      tracks: z.array(z.unknown()),
    }),
  },
  read: ({ type, object, id, created_at, data }) => ({
    type,
    mediaId: object?.id,
    id,
    emittedAt: created_at,
    data,
  }),
})

// TODO: verify, `)
  })

  test('extends the sender by each delivery', async () => {
    const { teach } = await listen()
    const first = { type: 'job.done', video_id: 'a', data: { size: 1, name: 'x', from: null } }
    const deliveries = [
      first,
      { ...first, data: { size: '1', name: null, from: { city: 'x' } } },
      { type: 'job.failed', data: { video_id: 'b', reason: 'x' } },
      { type: 'a b', video_id: 'c', data: [1] },
    ]
    let taught = { sender: '' }
    for (const delivery of deliveries) taught = await teach(delivery)
    codes.push(taught.sender)
    expect(taught.sender).toContain(`
    'job.done': z.object({
      size: z.union([z.number(), z.string()]),
      name: z.string().nullish(),
      from: z.object({
        city: z.string(),
      }).nullish(),
    }),
    'job.failed': z.object({
      video_id: z.string(),
      reason: z.string(),
    }),
  },`)
    expect(taught.sender).toContain('mediaId: video_id || data?.video_id,')
    for (const delivery of deliveries)
      expect(await receive(taught.sender, await makeDelivery(JSON.stringify(delivery)))).toMatchObject({
        outcome: 'accepted',
      })
  })

  test('makes an optional field of one that some deliveries lack', async () => {
    const { teach } = await listen()
    await teach({ type: 'job.done', uid: 'a', note: 'x' })
    expect((await teach({ type: 'job.done', uid: 'a' })).sender).toContain('note: z.string().optional(),')
  })

  test('takes no id of an item for that of the event', async () => {
    const { teach } = await listen()
    const { sender } = await teach({ type: 'film.changed', id: 'film-1', title: 'x' })
    expect(sender).toContain('mediaId: id,\n    // TODO: id, the event')
  })

  test.each<[string, object]>([
    ['addresses', { 'ana@example.com': 1, 'ben@example.com': 2 }],
    ['ids', { usr_4f9k2m: 1, '03a81509-049a-4c46-bc39-113e9b6638d4': 2, id_1234567: 3 }],
    ['people', { anastasia: { age: 1 }, benedikt: { age: 2 }, evelyn: { age: 3 } }],
    ['titles', { 'My holiday': 1, Überraschung: 2 }],
    ['long texts', { ['a'.repeat(41)]: 1 }],
  ])('prints no names of fields that are %s', async (kind, map) => {
    const { program, teach } = await listen()
    const { fields, sender } = await teach({ type: 'job.done', uid: 'a', scores: map })
    codes.push(sender)
    expect(fields).toContain(kind === 'people' ? 'scores.*.age: number' : 'scores.*: number')
    expect(sender).toContain('scores: z.record(z.string(), z.')
    for (const name of Object.keys(map)) expect(program.output()).not.toContain(name)
  })

  test('bounds the depth and the number of fields', async () => {
    const { teach } = await listen()
    let deep: unknown = 'x'
    for (let depth = 0; depth < 50; depth++) deep = { deep, deeper: [deep].slice(depth) }
    const letters = [...'abcdefghijklmnopqrstuvwxyz']
    const wide = Object.fromEntries(letters.flatMap((a) => letters.map((b) => [`${a}${b}`, 1])))
    const { fields, sender } = await teach({ type: 'job.done', uid: 'a', deep, wide })
    codes.push(sender)
    expect(fields).toHaveLength(101)
    expect(fields.at(-1)).toMatch(/^… and \d+ more$/)
    expect(sender.length).toBeLessThan(10_000)
  })

  test('writes no code from the names of fields, types and headers', async () => {
    const { teach } = await listen()
    const names = Object.fromEntries(hostile.map((name) => [name, { [name]: 1 }]))
    const data = `{"__proto__":{"a":1},"kept":1,"more":2,${JSON.stringify(names).slice(1)}`
    for (const type of [...hostile, '__proto__', 'job.done']) {
      const body = `{"type":${JSON.stringify(type)},"uid":"a","data":${data},"list":[{"__proto__":1}]}`
      const headers = { "x-it's-event": 'a', 'x-a-event': "it's" }
      const { sender } = await teach(body, headers)
      codes.push(sender)
      expect(await receive(sender, await makeDelivery(body, { headers }))).toMatchObject({ outcome: 'accepted' })
      for (const text of ['process.exit', 'script', "it's", '__proto__']) expect(sender).not.toContain(text)
    }
  })

  test('writes a verifier of several lines, too', async () => {
    const { teach } = await listen()
    const body = '{"type":"job.done","uid":"a"}'
    const time = Math.floor(Date.now() / 1_000)
    const headers = { 'x-sig': `t=${time};v1=${createHmac('sha512', secret).update(`${time}:${body}`).digest('hex')}` }
    const { sender } = await teach(body, headers)
    codes.push(sender)
    expect(await receive(sender, await makeDelivery(body, { headers }))).toMatchObject({ outcome: 'accepted' })
    expect(await receive(sender, await makeDelivery(body))).toMatchObject({ outcome: 'unauthorized' })
  })

  test('learns from no delivery that --verify rejects', async () => {
    const { program, post } = await listen(['--verify', 'header-token', '--header', 'x-token'])
    expect(await post({ type: 'job.done', uid: 'of-ana' })).toBe(401)
    expect(await post({ type: 'job.done', uid: 'of-ana' }, { 'x-token': secret })).toBe(200)
    const [rejected, accepted] = (await program.lines(/^{"at"/, 2)).map((line) => JSON.parse(line))
    expect(rejected.sender).toBeUndefined()
    expect(accepted.sender).toContain(
      "verify = headerToken({ secret: process.env.MEDIA_WEBHOOKS_SECRET!, header: 'x-token' })",
    )
    codes.push(accepted.sender)
  })

  test('writes how forms and plain text arrive', async () => {
    const { teach } = await listen()
    const { fields, sender } = await teach('type=a&uid=b', { 'content-type': 'application/x-www-form-urlencoded' })
    expect(fields).toEqual(['type: string', 'uid: string'])
    expect(sender).toContain("\n  body: 'form',\n")
    const plain = await (await listen()).teach({ type: 'a', uid: 'b' }, { 'content-type': "text/plain; charset='" })
    expect(plain.sender).toContain("\n  contentTypes: ['text/plain', 'application/json'],\n")
  })

  test('says that an event of the media service must be JSON by its content type, too', async () => {
    const { program, post } = await listen()
    const body = samplePayload('encoding.finished')
    expect(await post(body, { 'content-type': 'text/plain' })).toBe(415)
    const { reason, sender } = JSON.parse(await program.line(/^{"at"/))
    expect([reason, sender]).toEqual(['content-type must be application/json', undefined])
  })

  test('prints fields and sender for people, once', async () => {
    const program = start(['listen', '--port', '0'])
    const url = /http\S+\d/.exec(await program.line(/^Listening on http/))?.[0] ?? ''
    for (const uid of ['title-of-ana', 'title-of-ben']) await postJson(url, { type: 'job.done', uid })
    await program.lines(/^ {2}job\.done$/, 2)
    program.interrupt()
    await program.code
    expect(program.output()).toContain("another service's event; its fields:\n    type: string\n    uid: string\n")
    expect(program.output().split('export const sender = ')).toHaveLength(2)
    expect(program.output()).not.toContain('title-of')
  })
})

describe('listen --write', () => {
  test('writes what the documentation shows', async () => {
    const { teach } = await listen()
    const body = {
      ...{ type: 'job.done', event_id: 'e-1', video_id: 'film', created_at: '2026-03-01T12:04:18Z' },
      data: { seconds: 61.5, renditions: [{ name: '360p', url: 'https://example.com/360p' }], error: null },
    }
    const delivery = await signed({ sign: { scheme: 'hmac-signature', secret, header: 'x-signature' }, body })
    const { fields, sender } = await teach(delivery.body, Object.fromEntries(delivery.headers as Headers))
    const page = pageOf('commands')
    expect(blocksOf(page).map(({ code }) => code)).toContain(sender)
    expect(page.text).toContain(fields.map((field: string) => `    ${field}\n`).join(''))
  })

  test('writes the sender to a new file, and extends it', async () => {
    const file = join(await temporaryFolder(), 'sender.ts')
    const { teach } = await listen(['--write', file])
    expect(await teach({ type: 'job.done', uid: 'a' })).toMatchObject({ written: `wrote ${file}` })
    const { sender } = await teach({ type: 'job.failed', uid: 'a' })
    expect(await readFile(file, 'utf8')).toBe(sender)
    expect(sender).toMatch(/'job\.done': [\s\S]*'job\.failed': /)
  })

  test('overwrites no file, and no edits', async () => {
    const file = join(await temporaryFolder(), 'sender.ts')
    const { teach } = await listen(['--write', file])
    await teach({ type: 'job.done', uid: 'a' })
    await writeFile(file, '// Mine.')
    const { written } = await teach({ type: 'job.failed', uid: 'a' })
    expect(written).toBe(`${file} was edited or deleted, so listen writes it no more`)
    const { code, errors } = await finish(['listen', '--port', '0', '--write', file])
    expect([code, errors]).toEqual([
      1,
      `media-webhooks: there is a ${file} already, and listen overwrites no file: pass another --write\n`,
    ])
    expect(await readFile(file, 'utf8')).toBe('// Mine.')
  })
})

test('all of this code compiles', () => {
  expect(codes.length).toBeGreaterThan(20)
  expect(faultsIn(codes)).toEqual([])
})
