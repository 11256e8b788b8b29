import * as nodeCrypto from 'node:crypto'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import * as mediaWebhooks from '../../src/index.ts'
import { mounts } from '../support/mounts.ts'
import { postJson } from '../support/post-json.ts'
import { silent } from '../support/silent.ts'
import { ownCertificate, ownKey } from '../verify/sns-vectors.ts'
import * as documented from './documented-bodies.ts'
import { blocksOf, pageOf } from './pages.ts'
import { exportsOf } from './written-out.ts'

const secret = 'a-secret-of-the-test'

const hmac = (
  text: string,
  { key = secret as string | Buffer, hash = 'sha256', as = 'hex' as 'hex' | 'base64' } = {},
) => nodeCrypto.createHmac(hash, key).update(text).digest(as)

const seconds = () => String(Math.floor(Date.now() / 1000))

type Headers = Readonly<Record<string, string>>

/** A recipe, and deliveries as its service makes them. */
interface Case {
  /** The first line of its block. */
  readonly block: string
  /** The variable with its secret. */
  readonly variable: string
  readonly secret?: string
  readonly body: string
  /** The headers with the signature, as the service documents it. */
  readonly sign: (body: string) => Headers
  /** Headers that are not signed. */
  readonly headers?: Headers
  /** What the handler prints. */
  readonly printed: string
  /** The body of a repeat, if it differs. */
  readonly again?: string
  /** The body of a delivery that is not signed, if the signature is in the body. */
  readonly unsigned?: string
  /** What a repeat is answered. */
  readonly answer?: 'accepted'
}

/** Signs a message of SNS as Amazon documents it: its fields, in their order. */
function signSns(message: Headers): string {
  const names = ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
  const text = names.flatMap((name) => (message[name] ? [`${name}\n${message[name]}\n`] : [])).join('')
  const Signature = nodeCrypto.createSign('sha1').update(text).sign(ownKey, 'base64')
  return JSON.stringify({ ...message, Signature }, null, 2)
}

const clerkKey = 'c2VjcmV0IG9mIDI0IGJ5dGVzIQ=='
const signSvix = (body: string) => {
  const time = seconds()
  const signature = hmac(`msg_1.${time}.${body}`, { key: Buffer.from(clerkKey, 'base64'), as: 'base64' })
  return { 'svix-id': 'msg_1', 'svix-timestamp': time, 'svix-signature': `v1,${signature} v2,other` }
}

const snsType = { 'content-type': 'text/plain; charset=UTF-8' }

const recipes: readonly Case[] = [
  {
    block: 'bunny',
    variable: 'BUNNY_READ_ONLY_KEY',
    body: documented.bunny,
    sign: (body) => ({
      'x-bunnystream-signature': hmac(body),
      'x-bunnystream-signature-version': 'v1',
      'x-bunnystream-signature-algorithm': 'hmac-sha256',
    }),
    printed: 'look up 657bb740-a71b-4529-a012-528021c31a92 in library 133, and publish it',
    answer: 'accepted',
  },
  {
    block: 'api-video',
    variable: 'API_VIDEO_SECRET',
    secret: documented.apiVideo.secret,
    body: documented.apiVideo.body,
    sign: () => ({ 'x-api-video-signature': documented.apiVideo.signature }),
    printed: 'add 720p as hls to vi0000000000000000000000',
  },
  {
    block: 'media-convert',
    variable: 'TOPIC_ARN',
    secret: documented.sns.topicArn,
    body: signSns(documented.sns.notification),
    // Another message of SNS brings the same event when EventBridge repeats it.
    again: signSns({ ...documented.sns.notification, MessageId: '165545c9-2a5c-472c-8df2-7ff2be2b3b1b' }),
    unsigned: JSON.stringify(documented.sns.notification),
    sign: () => snsType,
    printed: 'job 1515368087458-qnoxtd failed: 1040 Example error message',
  },
  {
    block: 'bitmovin',
    variable: 'BITMOVIN_KEY',
    body: documented.bitmovin,
    sign: (body) => ({ 'bitmovin-signature': hmac(body, { hash: 'sha512' }) }),
    printed: 'encoding 782c5b18-8743-4edc-8c5d-015f3f5b8f85 is RUNNING',
  },
  {
    block: 'livepeer',
    variable: 'LIVEPEER_SECRET',
    body: documented.livepeer(1772366400456),
    again: documented.livepeer(1772366405456),
    sign: (body) => ({ 'livepeer-signature': `t=${JSON.parse(body).timestamp},v1=${hmac(body)}` }),
    printed: 'publish asset-1',
  },
  {
    block: 'zoom',
    variable: 'ZOOM_SECRET_TOKEN',
    body: documented.zoom.recording,
    again: documented.zoom.recording.replace('eyJ...', 'eyJ....'),
    sign: (body) => signZoom(body),
    printed: 'keep 4608677c-357d-439d-bbec-64bb69f5a9da of "Recordings download URL/access token 01"',
  },
  {
    block: 'clerk',
    variable: 'CLERK_SECRET',
    secret: `whsec_${clerkKey}`,
    body: documented.clerk,
    sign: signSvix,
    printed: 'welcome Example at example@example.org',
  },
  {
    block: 'github',
    variable: 'GITHUB_SECRET',
    body: documented.github.issue,
    sign: (body) => ({ 'x-hub-signature-256': `sha256=${hmac(body)}` }),
    headers: documented.github.headers,
    printed: 'octocat opened octocat/Hello-World#1347',
  },
  {
    block: 'stripe',
    variable: 'STRIPE_SECRET',
    secret: 'whsec_used_as_a_text',
    body: documented.stripe,
    again: documented.stripe.replace('"pending_webhooks": 0', '"pending_webhooks": 1'),
    sign: (body) => {
      const time = seconds()
      const key = 'whsec_used_as_a_text'
      return { 'stripe-signature': `t=${time},v1=${'0'.repeat(64)},v1=${hmac(`${time}.${body}`, { key })},v0=abc` }
    },
    printed: 'seti_1NG8Du2eZvKYlo2C9XMqbR0x began at 2023-06-06T22:19:30.000Z',
  },
  {
    block: 'shopify',
    variable: 'SHOPIFY_CLIENT_SECRET',
    body: documented.shopify.product,
    sign: (body) => ({ 'x-shopify-hmac-sha256': hmac(body, { as: 'base64' }) }),
    headers: documented.shopify.headers,
    printed: '9554194432293 is T-Shirt: 123456789 TSHIRT-001',
  },
]

function signZoom(body: string): Headers {
  const time = seconds()
  return { 'x-zm-request-timestamp': time, 'x-zm-signature': `v0=${hmac(`v0:${time}:${body}`)}` }
}

/** Runs the block of a recipe as the page prints it. */
function run({ block, variable, secret: own = secret }: Pick<Case, 'block' | 'variable' | 'secret'>) {
  vi.stubEnv(variable, own)
  const createReceiver = (options: mediaWebhooks.ReceiverOptions) =>
    mediaWebhooks.createReceiver({ ...options, logger: silent })
  const modules = { 'media-webhooks': { ...mediaWebhooks, createReceiver }, zod: { z }, 'node:crypto': nodeCrypto }
  const { receiver } = exportsOf('recipes', block, modules) as { receiver: mediaWebhooks.Receiver }
  onTestFinished(async () => void (await receiver.close()))
  return receiver
}

/** Mounts the receiver of a recipe, and returns a function that posts to it as the service does. */
async function start(recipe: Pick<Case, 'block' | 'variable' | 'secret'>) {
  const receiver = run(recipe)
  const { url, close } = await mounts.express5(receiver)
  onTestFinished(close)
  const post = async (body: string, headers: Headers) => {
    const response = await postJson(url, body, headers)
    return { status: response.status, answer: JSON.parse(await response.text()) }
  }
  return { receiver, post }
}

const recipeOf = (block: string) => recipes.find((each) => each.block === block) as Case

let printed: string[]
let fetched: string[]
beforeEach(() => {
  printed = []
  fetched = []
  vi.spyOn(console, 'log').mockImplementation((line) => void printed.push(line))
  const real = globalThis.fetch
  vi.stubGlobal('fetch', (url: string, init?: RequestInit) => {
    if (/^http:\/\/(127\.0\.0\.1|localhost)/.test(url)) return real(url, init)
    const { authorization } = { authorization: '', ...init?.headers }
    fetched.push(`${url}${authorization && ` with ${authorization}`}`)
    return Promise.resolve(new Response(ownCertificate))
  })
})
afterEach(() => {
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

/** A letter of the value of a signed field is another one. */
const forge = (body: string) => body.replace(/(?<=[:,]\s*"[^"]*)[A-Za-z](?=[^"]*")/, 'X')

describe.each(recipes)('the recipe $block', (recipe) => {
  const { body, sign, headers = {}, again = body, unsigned = body, answer = 'duplicate' } = recipe

  test('hands over typed data of a delivery as documented, and knows a repeat', async () => {
    const { post } = await start(recipe)
    expect(await post(body, { ...sign(body), ...headers })).toEqual({ status: 200, answer: { status: 'accepted' } })
    expect(await post(again, { ...sign(again), ...headers })).toEqual({ status: 200, answer: { status: answer } })
    await expect
      .poll(() => printed)
      .toEqual(answer === 'accepted' ? [recipe.printed, recipe.printed] : [recipe.printed])
  })

  test('rejects a forged delivery', async () => {
    const { post } = await start(recipe)
    const forged = forge(body)
    expect(forged).not.toBe(body)
    expect(await post(forged, { ...sign(body), ...headers })).toMatchObject({ status: 401 })
    expect(await post(unsigned, headers)).toMatchObject({ status: 401 })
  })
})

test('each block of the page is among these', () => {
  const names = blocksOf(pageOf('recipes')).map(({ code }) => /^\/\/ (.*)\.ts\n/.exec(code)?.[1])
  expect(names.filter((name) => name !== 'github-form')).toEqual(recipes.map(({ block }) => block))
})

describe('AWS MediaConvert', () => {
  test('is subscribed to by fetching the URL in a signed message', async () => {
    const { post } = await start(recipeOf('media-convert'))
    expect(await post(signSns(documented.sns.confirmation), snsType)).toMatchObject({ status: 200 })
    await expect.poll(() => fetched).toContain(documented.sns.confirmation.SubscribeURL)
  })

  test('brings nothing of another topic', async () => {
    const { post } = await start(recipeOf('media-convert'))
    const TopicArn = `${documented.sns.topicArn}2`
    expect(await post(signSns({ ...documented.sns.confirmation, TopicArn }), snsType)).toMatchObject({ status: 401 })
    expect(fetched).toEqual([])
  })

  test('reports the files that a job wrote', async () => {
    const { post } = await start(recipeOf('media-convert'))
    const message = { ...documented.sns.notification, Message: documented.mediaConvertComplete }
    expect(await post(signSns(message), snsType)).toMatchObject({ status: 200 })
    await expect.poll(() => printed).toEqual(['job 1671476818694-phptj0 wrote s3://amzn-s3-demo-bucket/file/file.mp4'])
  })

  test('may report what the recipe does not handle', async () => {
    const { post } = await start(recipeOf('media-convert'))
    const progress = documented.mediaConvert.replace('"ERROR"', '"PROGRESSING"')
    expect(await post(signSns({ ...documented.sns.notification, Message: progress }), snsType)).toEqual({
      status: 200,
      answer: { status: 'ignored' },
    })
  })
})

describe('Zoom', () => {
  const { validation, recording } = documented.zoom

  test('gets its handshake answered, if it is signed', async () => {
    const { post } = await start(recipeOf('zoom'))
    const plainToken = 'qgg8vlvZRS6UYooatFL8Aw'
    expect(await post(validation, signZoom(validation))).toEqual({
      status: 200,
      answer: { plainToken, encryptedToken: hmac(plainToken) },
    })
    expect(await post(validation, {})).toMatchObject({ status: 401 })
  })

  test('gets the token of its files in a header', async () => {
    const { post } = await start(recipeOf('zoom'))
    await post(recording, signZoom(recording))
    await expect
      .poll(() => fetched)
      .toEqual(['https://us02web.zoom.us/rec/webhook_download/1V_tamcytBlE9U with Bearer eyJ...'])
  })
})

describe('the signature that a service publishes', () => {
  test('of GitHub is verified', async () => {
    const { signed, headers } = documented.github
    const { post } = await start({ ...recipeOf('github'), secret: signed.secret })
    const { answer } = await post(signed.body, { ...headers, 'x-hub-signature-256': signed.signature })
    expect(answer).toMatchObject({ code: 'malformed', message: 'the body is not JSON' })
  })

  test('of Svix is verified', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1731705121_000 })
    onTestFinished(() => void vi.useRealTimers())
    const { body, headers, secret } = documented.svix
    const { post } = await start({ ...recipeOf('clerk'), secret })
    expect((await post(body, headers)).answer).toMatchObject({ code: 'malformed' })
    expect((await post(`${body} `, headers)).answer).toMatchObject({ code: 'unauthorized' })
  })
})

describe('GitHub', () => {
  test('gets its ping answered', async () => {
    const { post } = await start(recipeOf('github'))
    const ping = '{"zen":"Keep it logically awesome.","hook_id":1}'
    const headers = { ...recipeOf('github').sign(ping), 'x-github-event': 'ping', 'x-github-delivery': '1' }
    expect(await post(ping, headers)).toEqual({ status: 200, answer: { status: 'ignored' } })
  })

  test('may post forms', async () => {
    const modules = { 'media-webhooks': mediaWebhooks, zod: { z } }
    const { githubForm: sender } = exportsOf('recipes', 'github-form', modules) as {
      githubForm: mediaWebhooks.Sender<{ 'issues.opened': { issue: { number: number } } }>
    }
    const verify = mediaWebhooks.hmacSignature({ secret, header: 'x-hub-signature-256', prefix: 'sha256=' })
    const receiver = mediaWebhooks.createReceiver({ sender, verify, logger: silent })
    const numbers: number[] = []
    receiver.on('issues.opened', ({ data }) => void numbers.push(data.issue.number))
    const body = `payload=${encodeURIComponent(documented.github.issue)}`
    const form = { ...documented.github.headers, 'content-type': 'application/x-www-form-urlencoded' }
    const headers = new Headers({ ...recipeOf('github').sign(body), ...form })
    const delivery = { method: 'POST', url: '/', headers, body: new TextEncoder().encode(body) }
    expect(await receiver.receive(delivery)).toMatchObject({ outcome: 'accepted' })
    expect(await receiver.receive(delivery)).toMatchObject({ outcome: 'duplicate' })
    await receiver.close()
    expect(numbers).toEqual([1347])
  })
})

test('ids of Shopify beyond 2^53 arrive whole', async () => {
  const { post } = await start(recipeOf('shopify'))
  const { sign, body } = recipeOf('shopify')
  const order = body.replace('9554194432293', '9007199254740993').replace('123456789', '820982911946154508')
  expect(await post(order, { ...sign(order), ...documented.shopify.headers })).toMatchObject({ status: 200 })
  await expect.poll(() => printed).toEqual(['9007199254740993 is T-Shirt: 820982911946154508 TSHIRT-001'])
})

test.each(['shopify', 'stripe', 'github'])('%s may send more values than the default limit', async (block) => {
  const { post } = await start(recipeOf(block))
  const { sign, body, headers } = recipeOf(block)
  const more = body.replace('{', `{"line_items":${JSON.stringify(Array.from({ length: 5_000 }, (_, n) => [n]))},`)
  expect(await post(more, { ...sign(more), ...headers })).toMatchObject({ status: 200 })
})

test('Livepeer signs the body alone, although its header has a time', async () => {
  const { post } = await start(recipeOf('livepeer'))
  const { body } = recipeOf('livepeer')
  const time = 1772366400456
  for (const signature of [`t=${time},v1=${hmac(`${time}.${body}`)}`, `v1=${hmac(body)},v1=${hmac(body)}`, `t=${time}`])
    expect(await post(body, { 'livepeer-signature': signature })).toMatchObject({ status: 401 })
})
