import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import * as mediaWebhooks from '../../src/index.ts'
import { deliver, signWithHmac } from '../../src/testing/index.ts'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { postJson } from '../support/post-json.ts'
import { silent } from '../support/silent.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { blocksOf, pageOf } from './pages.ts'
import { exportsOf } from './written-out.ts'

type Challenge = mediaWebhooks.Challenge

const secret = 'a-secret-of-the-test'
const hmac = (text: string) => createHmac('sha256', secret).update(text).digest('hex')

/** The headers with a signature as the service documents it. */
type Sign = (body: string) => Record<string, string>

/** Signs the time, a dot and the body. */
const withTime =
  (header: string, time: string, signature: string): Sign =>
  (body) => {
    const now = Math.floor(Date.now() / 1000)
    return { [header]: `${time}=${now},${signature}=${hmac(`${now}.${body}`)}` }
  }

type Inbox = mediaWebhooks.InboxDefinition

/** What the blocks of a recipe export. */
interface Recipe {
  readonly receiver: mediaWebhooks.Receiver
  uploadRequested(uid: string): Promise<string>
  replayUnreadable(): Promise<void>
}

/** Runs blocks as the page shows them; a block may import an earlier one. Only the inbox is given. */
function run(blocks: readonly string[], inbox: Inbox, zod: object = z): Recipe {
  const createReceiver = (options: mediaWebhooks.ReceiverOptions) =>
    mediaWebhooks.createReceiver({ ...options, inbox, logger: silent })
  const modules: Record<string, unknown> = {
    'media-webhooks': { ...mediaWebhooks, createReceiver },
    zod: { z: zod },
  }
  for (const block of blocks) modules[`./${block}.ts`] = exportsOf('senders', block, modules)
  const recipe = Object.assign({}, ...blocks.map((block) => modules[`./${block}.ts`])) as Recipe
  onTestFinished(async () => void (await recipe.receiver.close()))
  return recipe
}

const muxBlocks = ['mux', 'mux-receiver']

/** What Mux sends about an asset that was made by a direct upload. */
const muxAsset = (data: object = {}, fields: object = {}) => ({
  type: 'video.asset.ready',
  request_id: null,
  object: { type: 'asset', id: 'asset-1' },
  id: '03a81509-049a-4c46-bc39-113e9b6638d4',
  environment: { name: 'Development', id: 'abc123' },
  data: {
    id: 'asset-1',
    upload_id: 'upload-1',
    status: 'ready',
    duration: 2.5,
    created_at: 1772366600,
    playback_ids: [{ id: 'playback-1', policy: 'public' }],
    ...data,
  },
  created_at: '2026-03-01T12:04:18.000000Z',
  attempts: [],
  accessor_source: null,
  accessor: null,
  ...fields,
})

const muxUpload = (type: string, fields: object = {}) => ({
  type: `video.upload.${type}`,
  object: { type: 'upload', id: 'upload-1' },
  id: `event-${type}`,
  environment: { name: 'Development', id: 'abc123' },
  data: { id: 'upload-1', status: 'waiting', timeout: 3600, cors_origin: 'https://example.com' },
  created_at: '2026-03-01T12:00:00.000000Z',
  attempts: [],
  ...fields,
})

/** What Cloudflare sends about a video. */
const streamVideo = (fields: object = {}) => ({
  uid: 'video-1',
  creator: null,
  readyToStream: true,
  status: { state: 'ready', pctComplete: '39.000000', errorReasonCode: '', errorReasonText: '' },
  meta: { filename: 'small.mp4' },
  created: '2026-03-01T12:00:00.512033Z',
  modified: '2026-03-01T12:04:18.774299Z',
  duration: 5.5,
  input: { width: 560, height: 320 },
  watermark: null,
  ...fields,
})

/** A recipe, and deliveries as the service makes them. */
interface Case {
  readonly name: string
  readonly blocks: readonly string[]
  readonly sign: Sign
  readonly headers: Record<string, string>
  readonly payload: object
  /** The payload of a retry. */
  readonly again: object
  /** What the recipe prints of the payload. */
  readonly printed: string
  readonly wrong: object
  /** The field that is wrong. */
  readonly field: string
  /** What the recipe prints of the wrong payload once its schema takes it. */
  readonly afterwards: string
}

const recipes: [Case, Case, Case] = [
  {
    name: 'Mux',
    blocks: muxBlocks,
    sign: withTime('mux-signature', 't', 'v1'),
    headers: {},
    payload: muxAsset(),
    // The number of an attempt is another in each.
    again: muxAsset({}, { attempts: [{ id: 'attempt-1', response_status_code: 500 }] }),
    printed: 'publish upload-1: 2.5 s, asset asset-1',
    wrong: muxAsset({ duration: 'long' }),
    field: 'data.duration',
    afterwards: 'publish upload-1: long s, asset asset-1',
  },
  {
    name: 'Cloudflare Stream',
    blocks: ['cloudflare-stream'],
    sign: withTime('webhook-signature', 'time', 'sig1'),
    headers: {},
    payload: streamVideo(),
    again: streamVideo(),
    printed: 'publish video-1: 5.5 s, encoded to 39 %',
    wrong: streamVideo({ duration: 'long' }),
    field: 'data.duration',
    afterwards: 'publish video-1: long s, encoded to 39 %',
  },
  {
    name: 'an encoder',
    blocks: ['encoder'],
    sign: (body: string) => ({ 'x-signature': `sha256=${hmac(body)}` }),
    headers: { 'x-event': 'job.failed', 'x-delivery': 'delivery-1' },
    payload: { film: 'film-1', at: 1772366400, reason: 'no sound' },
    again: { film: 'film-1', at: 1772366400, reason: 'no sound' },
    printed: 'tell the owner of film-1: no sound',
    wrong: { film: 'film-1', at: 1772366400, reason: 7 },
    field: 'data.reason',
    afterwards: 'tell the owner of film-1: 7',
  },
]

const inboxes: [string, () => Promise<Inbox>][] = [
  ['memory', async () => memoryInbox()],
  ['SQLite', async () => sqliteInbox({ path: join(await temporaryFolder(), 'events.db') })],
]
const adapters: AdapterName[] = ['express5', 'hono-node']
const setups = inboxes.flatMap(([of, open]) => adapters.map((adapter) => ({ of, open, adapter })))

let printed: string[]
beforeEach(() => {
  printed = []
  for (const name of ['MUX_SECRET', 'STREAM_SECRET', 'ENCODER_SECRET']) vi.stubEnv(name, secret)
  vi.spyOn(console, 'log').mockImplementation((line) => void printed.push(line))
})
afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

/** Mounts a receiver, and returns a function that sends to it over HTTP as the service does. */
async function sending(adapter: AdapterName, receiver: mediaWebhooks.Receiver, sign: Sign) {
  const { url, close } = await mounts[adapter](receiver)
  onTestFinished(close)
  return async (payload: object, headers: Record<string, string> = {}, signed = sign) => {
    const body = JSON.stringify(payload)
    const response = await postJson(url, body, { ...signed(body), ...headers })
    const { status, message = '' } = (await response.json()) as { status: string; message?: string }
    return `${response.status} ${status}${message && `: ${message}`}`
  }
}

describe.each(recipes)('the recipe for $name', ({ blocks, sign, headers, payload, again, ...recipe }) => {
  describe.each(setups)('with $adapter and $of', ({ open, adapter }) => {
    test('hands over typed data once, and rejects a forged signature', async () => {
      const { receiver } = run(blocks, await open())
      const send = await sending(adapter, receiver, sign)
      expect(await send(payload, headers)).toBe('200 accepted')
      expect(await send(again, headers)).toBe('200 duplicate')
      const forged = (body: string) => sign(`${body} `)
      expect(await send(payload, { ...headers, 'x-delivery': 'delivery-2' }, forged)).toMatch(/^401 /)
      await expect.poll(() => printed).toEqual([recipe.printed])
    })

    test('keeps what does not fit, and handles it after a deploy', async () => {
      let isDeployed = false
      const loose = (type: string) => () => z.custom((value) => isDeployed || typeof value === type)
      const zod = { ...z, number: loose('number'), string: loose('string') }
      const { receiver } = run(blocks, await open(), zod)
      const send = await sending(adapter, receiver, sign)
      const { deadLetters } = receiver.inbox

      expect(await send(recipe.wrong, headers)).toBe(`400 error: field ${recipe.field}: does not match its schema`)
      const [kept] = await deadLetters.list()
      expect(kept?.unreadable?.reason).toContain(`field ${recipe.field}`)
      await expect(async () => deadLetters.replay(kept?.key ?? '')).rejects.toMatchObject({ code: 'malformed' })

      isDeployed = true
      expect(await deadLetters.replay(kept?.key ?? '')).toBe(true)
      await expect.poll(() => printed).toEqual([recipe.afterwards])
      expect(await deadLetters.list()).toEqual([])
      expect(await send(recipe.wrong, headers)).toBe('200 duplicate')
    })
  })
})

const [mux, stream, encoder] = recipes

const expectedBy = async ({ inbox }: mediaWebhooks.Receiver) => (await inbox.stats()).expected ?? 0

describe('an upload to Mux', () => {
  const start = async () => {
    vi.stubEnv('ENCODED_WITHIN', '300 ms')
    const { receiver } = run(muxBlocks, memoryInbox())
    const send = await sending('express5', receiver, mux.sign)
    return { receiver, send }
  }

  test('ends with its asset, which has the id of the upload', async () => {
    const { receiver, send } = await start()
    expect(await send(muxUpload('created'))).toBe('200 accepted')
    expect(await expectedBy(receiver)).toBe(1)
    expect(await send(muxAsset({ errors: { messages: ['no sound'] } }, { type: 'video.asset.errored' }))).toBe(
      '200 accepted',
    )
    await expect.poll(() => printed).toEqual(['tell the owner of upload-1: no sound'])
    expect(await expectedBy(receiver)).toBe(0)
  })

  test('ends when it is cancelled', async () => {
    const { receiver, send } = await start()
    for (const type of ['created', 'cancelled']) expect(await send(muxUpload(type))).toBe('200 accepted')
    expect(await expectedBy(receiver)).toBe(0)
  })

  test('is reported if nothing follows, and an asset without an upload keeps its own id', async () => {
    const { send } = await start()
    await send(muxUpload('created'))
    await send(muxAsset({ upload_id: undefined }))
    await expect.poll(() => printed).toContainEqual(expect.stringContaining('ask Mux about upload-1'))
    expect(printed).toContainEqual(expect.stringContaining('publish asset-1'))
  })
})

test('the function of the page replays what fits now, and says why the rest does not', async () => {
  let isDeployed = false
  const number = () => z.custom((value) => isDeployed || typeof value === 'number')
  const { receiver, replayUnreadable } = run([...muxBlocks, 'replay'], memoryInbox(), { ...z, number })
  const send = await sending('express5', receiver, mux.sign)
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
  // Two deliveries of one event, and one without a media id.
  expect(await send(mux.wrong)).toMatch(/^400 /)
  expect(await send({ ...mux.wrong, attempts: [{ id: 'attempt-1' }] })).toMatch(/^400 /)
  expect(await send(muxUpload('created', { object: {} }))).toMatch(/^400 .*mediaId/)
  expect(await receiver.inbox.deadLetters.list()).toHaveLength(3)

  isDeployed = true
  await replayUnreadable()
  await expect.poll(() => printed).toEqual([mux.afterwards])
  expect(warned.mock.calls).toEqual([['field mediaId: expected a non-empty string']])
  expect(await receiver.inbox.deadLetters.list()).toHaveLength(1)
})

describe('an upload to Cloudflare Stream', () => {
  test('is expected from when the server asked for it, and ends with either code of an error', async () => {
    vi.stubEnv('ENCODED_WITHIN', '300 ms')
    const { receiver, uploadRequested } = run(stream.blocks, memoryInbox())
    const send = await sending('hono-node', receiver, stream.sign)
    for (const uid of ['video-1', 'video-2', 'lost']) expect(await uploadRequested(uid)).toBe('accepted')
    expect(await uploadRequested('video-1')).toBe('duplicate')
    const modified = new Date(Date.now() + 1000).toISOString()
    const failed = (uid: string, code: string) =>
      streamVideo({
        uid,
        modified,
        readyToStream: false,
        status: { state: 'error', step: 'encoding', [code]: 'ERR_1' },
      })
    expect(await send(failed('video-1', 'errReasonCode'))).toBe('200 accepted')
    expect(await send(failed('video-2', 'errorReasonCode'))).toBe('200 accepted')
    await expect.poll(() => printed).toContain('ask Cloudflare about lost')
    expect(printed.toSorted()).toEqual([
      'ask Cloudflare about lost',
      'tell the owner of video-1: ERR_1',
      'tell the owner of video-2: ERR_1',
    ])
  })

  test('is another event if its state has another percentage', async () => {
    const { receiver } = run(stream.blocks, memoryInbox())
    const send = await sending('hono-node', receiver, stream.sign)
    expect(await send(streamVideo())).toBe('200 accepted')
    expect(await send(streamVideo({ status: { state: 'ready', pctComplete: '100.000000' } }))).toBe('200 accepted')
    await expect.poll(() => printed).toContain('publish video-1: 5.5 s, encoded to 100 %')
  })
})

test('two services have receivers of their own in one process, and may use the same ids', async () => {
  const open = async () => sqliteInbox({ path: join(await temporaryFolder(), 'events.db') })
  const ofMux = run(muxBlocks, await open()).receiver
  const ofEncoder = run(encoder.blocks, await open()).receiver
  const toMux = await sending('express5', ofMux, mux.sign)
  const toEncoder = await sending('express5', ofEncoder, encoder.sign)
  const sameId = { 'x-event': 'job.failed', 'x-delivery': muxAsset().id }
  expect(await toMux(muxAsset())).toBe('200 accepted')
  expect(await toEncoder({ ...encoder.payload, film: 'upload-1' }, sameId)).toBe('200 accepted')
  expect(await toMux(muxAsset(), {}, encoder.sign)).toMatch(/^401 /)
  await expect.poll(() => printed.toSorted()).toEqual([mux.printed, 'tell the owner of upload-1: no sound'])
})

test('a look-up and its late delivery are one event with a key of type and media id', async () => {
  const modules = { 'media-webhooks': mediaWebhooks, zod: { z } }
  const { mux: sender } = exportsOf('senders', 'mux', modules) as {
    mux: mediaWebhooks.Sender<{ [type: string]: never }>
  }
  const receiver = mediaWebhooks.createReceiver({
    sender,
    verify: mediaWebhooks.unverified(),
    logger: silent,
    eventKey: ({ type, mediaId }) => JSON.stringify([type, mediaId]),
  })
  const handled: unknown[] = []
  receiver.onAny((event) => void handled.push(event))
  const found = { type: 'video.asset.ready', mediaId: 'upload-1', data: { id: 'asset-1', duration: 61.5 } }
  expect(await receiver.accept(found)).toBe('accepted')
  expect(await deliver(receiver, muxAsset())).toMatchObject({ outcome: 'duplicate' })
  await expect.poll(() => handled).toMatchObject([{ source: 'lookup', data: { duration: 61.5 } }])
})

describe('a block of another form', () => {
  const signature = { secret, header: 'x-signature' }
  const sign = signWithHmac(signature)
  const start = (name: string) => {
    vi.stubGlobal('verify', mediaWebhooks.hmacSignature(signature))
    onTestFinished(() => void vi.unstubAllGlobals())
    vi.stubEnv('VERIFY_TOKEN', 'token')
    const createReceiver = (options: mediaWebhooks.ReceiverOptions) =>
      mediaWebhooks.createReceiver({ ...options, logger: silent })
    return exportsOf('senders', name, { 'media-webhooks': { ...mediaWebhooks, createReceiver }, zod: { z } })
  }

  test('reads a list of events', async () => {
    const { receiver } = start('batches') as { receiver: mediaWebhooks.Receiver }
    const entry = (id: number) => ({ event: 'encoded', film: `film-${id}`, id: `${id}`, seconds: id })
    const sent = await deliver(receiver, JSON.stringify([entry(1), entry(2), entry(2)]), { sign })
    expect(JSON.parse(sent.body)).toEqual({ status: 'accepted', events: { accepted: 2, duplicate: 1 } })
    await receiver.close()
    expect(printed).toEqual(['film-1 has 1 s', 'film-2 has 2 s'])
  })

  test('reads a compressed form', async () => {
    const { forms: sender } = start('forms') as { forms: mediaWebhooks.Sender<{ encoded: { seconds: number } }> }
    const receiver = mediaWebhooks.createReceiver({ sender, verify: mediaWebhooks.unverified(), logger: silent })
    const found: number[] = []
    receiver.on('encoded', ({ data }) => void found.push(data.seconds))
    const headers = new Headers({
      'content-type': 'application/x-www-form-urlencoded',
      'content-encoding': 'gzip',
    })
    const body = () => gzipSync('event=encoded&film=film-1&id=1&seconds=61.5')
    expect(await receiver.receive({ method: 'POST', url: '/', headers, body })).toMatchObject({ outcome: 'accepted' })
    await receiver.close()
    expect(found).toEqual([61.5])
  })

  test('answers the handshakes of the page', async () => {
    const { sender, facebook, graph } = start('handshakes') as unknown as Record<'facebook' | 'graph', Challenge> & {
      sender: mediaWebhooks.Sender<never>
    }
    const receiver = mediaWebhooks.createReceiver({
      sender,
      verify: mediaWebhooks.hmacSignature(signature),
      logger: silent,
    })
    const slack = JSON.stringify({ token: 'x', challenge: '3eZbrw1aB', type: 'url_verification' })
    expect(await deliver(receiver, slack, { sign })).toMatchObject({ status: 200, body: '3eZbrw1aB' })
    expect(await deliver(receiver, slack)).toMatchObject({ status: 401 })

    const ask = (challenge: Challenge, method: string, url: string) =>
      mediaWebhooks
        .createReceiver({
          sender: mediaWebhooks.defineSender({
            name: 'asking',
            events: sender.events,
            read: () => undefined,
            challenge,
          }),
          verify: mediaWebhooks.hmacSignature(signature),
          logger: silent,
        })
        .receive({ method, url, headers: new Headers(), body: new Uint8Array() })
    const url = '/?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token='
    expect(await ask(facebook, 'GET', `${url}token`)).toMatchObject({ status: 200, body: '1158201444' })
    expect(await ask(facebook, 'GET', `${url}other`)).toMatchObject({ status: 405 })
    expect(await ask(graph, 'POST', '/?validationToken=a%20b')).toMatchObject({ status: 200, body: 'a b' })
    expect(await ask(graph, 'POST', '/')).toMatchObject({ status: 401 })
  })
})

test('the example for Mux has the sender of the page', () => {
  const block = blocksOf(pageOf('senders')).find(({ code }) => code.startsWith('// mux.ts\n'))
  const file = readFileSync(new URL('../../examples/mux/mux.ts', import.meta.url), 'utf8')
  expect(`// mux.ts\n${file}`).toBe(block?.code)
})
