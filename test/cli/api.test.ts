import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../adapters/node.ts'
import { unverified } from '../../src/index.ts'
import { createEmulator, type Emulator } from '../../src/service/emulator/index.ts'
import { watchedReceiver } from '../adapters/receivers.ts'
import { serveWebhook } from '../support/serve.ts'
import { finish } from './program.ts'

let emulator: Emulator
let env: Record<string, string>
beforeAll(async () => {
  emulator = await createEmulator()
  env = {
    MEDIA_WEBHOOKS_BASE_URL: emulator.url,
    MEDIA_WEBHOOKS_PUBLIC_KEY: emulator.credentials.publicKey,
    MEDIA_WEBHOOKS_SECRET_KEY: emulator.credentials.secretKey,
  }
})
afterAll(() => emulator.close())

const command = (...args: string[]) => finish(args, env)

/** Runs a command with --json, and returns what it prints. */
async function answer(...args: string[]) {
  const { code, output, errors } = await command(...args, '--json')
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  return JSON.parse(output)
}

const url = 'https://media:s3cret@example.com/webhooks/media?token=s3cret'
const masked = 'https://…@example.com/webhooks/media?token=…'

describe('API keys', () => {
  test('are created, listed, renamed and deleted', async () => {
    const { apiKey } = await answer('keys', 'create', '--name', 'uploader', '--ttl', '60', '--type', 'only_upload')
    expect(apiKey).toMatchObject({ name: 'uploader', ttl: 60, type: 'only_upload', secret: expect.any(String) })
    const listed = await answer('keys', 'list', '--search', 'uploader')
    expect(listed).toMatchObject({ total: 1, apiKeys: [{ id: apiKey.id, name: 'uploader' }] })
    expect(JSON.stringify(listed)).not.toContain(apiKey.secret)

    await answer('keys', 'rename', apiKey.id, '--name', 'renamed')
    expect(await answer('keys', 'list', '--search', 'renamed')).toMatchObject({ total: 1 })
    await answer('keys', 'delete', apiKey.id)
    expect(await answer('keys', 'list', '--search', 'renamed')).toMatchObject({ total: 0 })
  })

  test('are sorted and paged', async () => {
    for (const name of ['page-b', 'page-c', 'page-a']) await answer('keys', 'create', '--name', name, '--ttl', '60')
    const args = ['--search', 'page-', '--sort-by', 'name', '--order-by', 'desc', '--limit', '2', '--offset', '1']
    const { apiKeys, total } = await answer('keys', 'list', ...args)
    expect([apiKeys.map(({ name }: { name: string }) => name), total]).toEqual([['page-b', 'page-a'], 3])
  })

  test('are printed for people, with the secret of a new key only once', async () => {
    const { code, output } = await command('keys', 'create', '--name', 'people', '--ttl', '60')
    expect(code).toBe(0)
    const [, secret = 'none'] = /^secret key +(\S+)$/m.exec(output) ?? []
    const list = await command('keys', 'list', '--search', 'people')
    expect(list.output).toMatch(/ people {2}full_access {2}until .*Z\n1 of 1\n$/)
    expect(list.output).not.toContain(secret)
  })
})

describe('Webhooks', () => {
  test('are created, read, changed and deleted, without the secrets in their URLs', async () => {
    const events = 'encoding.finished,encoding.failed'
    const { webhook } = await answer('webhooks', 'create', '--url', url, '--events', events, '--name', 'one')
    expect(webhook).toMatchObject({ name: 'one', url: masked, encodingFinished: true, fileReceived: false })

    await answer('webhooks', 'update', webhook.id, '--events', 'all', '--name', 'two')
    const changed = (await answer('webhooks', 'get', webhook.id)).webhook
    expect(changed).toMatchObject({ name: 'two', url: masked, fileReceived: true, partialFinished: true })
    expect((await answer('webhooks', 'get', webhook.id, '--reveal')).webhook.url).toBe(url)

    await answer('webhooks', 'delete', webhook.id)
    const { code, errors } = await command('webhooks', 'get', webhook.id)
    expect(code).toBe(1)
    expect(errors).toMatch(/^media-webhooks: .*404.*\n$/)
  })

  test('are filtered by their events, and printed for people', async () => {
    for (const events of ['file.received', 'file.received,encoding.started', 'encoding.started']) {
      await answer('webhooks', 'create', '--url', url, '--events', events, '--name', `filtered ${events}`)
    }
    const { output } = await command('webhooks', 'list', '--search', 'filtered', '--events', 'file.received')
    expect(output.trim().split('\n')).toEqual([
      expect.stringMatching(/ filtered file\.received .*…@example\.com\S* {2}file\.received$/),
      expect.stringMatching(/ file\.received,encoding\.started$/),
      '2 of 2',
    ])
    expect(output).not.toContain('s3cret')
  })

  test('are checked with a test delivery, which fails if the receiver is down', async () => {
    const { receiver, reports } = watchedReceiver({ verify: unverified() })
    const up = await serveWebhook(nodeHandler(receiver))
    const { webhook } = await answer('webhooks', 'create', '--url', up, '--events', 'all')
    await answer('webhooks', 'check', webhook.id)
    expect(reports).toMatchObject([{ mediaId: '00000000-0000-0000-0000-000000000000', status: 200 }])

    await answer('webhooks', 'update', webhook.id, '--url', 'http://127.0.0.1:1/?token=s3cret')
    const { code, output, errors } = await command('webhooks', 'check', webhook.id)
    expect({ code, output }).toEqual({ code: 1, output: '' })
    expect(errors).not.toContain('s3cret')
  })
})

test('The help of a command that prints URLs says which secrets it cannot recognise', async () => {
  for (const path of [['webhooks', 'list'], ['webhooks', 'get'], ['webhooks', 'create'], ['doctor']]) {
    expect((await command(...path, '--help')).output).toContain('A short secret in the path looks like a name')
  }
})

describe('The credentials', () => {
  test('can be a token, and flags come before the environment', async () => {
    const { accessToken } = emulator.credentials
    const wrong = { ...env, MEDIA_WEBHOOKS_SECRET_KEY: 'wrong-secret' }
    expect((await finish(['keys', 'list'], wrong)).errors).toMatch(/401/)
    expect((await finish(['keys', 'list', '--access-token', accessToken], wrong)).code).toBe(0)
    expect((await finish(['keys', 'list', '--secret-key', emulator.credentials.secretKey], wrong)).code).toBe(0)
    const token = { MEDIA_WEBHOOKS_BASE_URL: emulator.url, MEDIA_WEBHOOKS_ACCESS_TOKEN: accessToken }
    expect((await finish(['webhooks', 'list'], token)).code).toBe(0)
  })

  test('are asked for if they are missing, and never printed', async () => {
    const { code, errors } = await finish(['keys', 'list', '--base-url', emulator.url])
    expect(code).toBe(2)
    expect(errors).toContain('--public-key and --secret-key, or --access-token (or set MEDIA_WEBHOOKS_PUBLIC_KEY')
    const rejected = await finish(['keys', 'list', '--base-url', emulator.url, '--access-token', 'not-the-token'])
    expect(rejected.code).toBe(1)
    expect(rejected.errors).not.toContain('not-the-token')
    const unusable = await finish(['keys', 'list', '--base-url', emulator.url, '--access-token', 'with\nbreak'])
    expect(unusable.code).toBe(2)
    expect(unusable.errors).not.toContain('break')
  })

  test.each([
    [['keys', 'create', '--name', 'x'], /--ttl <seconds> is missing/],
    [['keys', 'create', '--name', 'x', '--ttl', '0'], /--ttl takes a whole number from 1 to 2147483647/],
    [['keys', 'list', '--limit', '0'], /--limit takes a whole number from 1/],
    [['webhooks', 'list', '--limit', '101'], /--limit takes a whole number from 1 to 100/],
    [['keys', 'rename', '--name', 'x'], /<id> is missing/],
    [['keys', 'list', '--public-key', 'a', '--access-token', 'b'], /a key or --access-token, not both/],
    [['webhooks', 'create', '--events', 'all'], /--url <url> is missing/],
    [['webhooks', 'create', '--url', 'ftp://s3cret', '--events', 'all'], /--url takes an http or https URL/],
    [
      ['webhooks', 'create', '--url', 'http://a/', '--events', 'encoding.done'],
      /--events takes one or more of all, file\.received, /,
    ],
    [['webhooks', 'update', 'an-id'], /nothing to change: pass --url, --events or --name/],
    [
      ['webhooks', 'create', '--url', 'http://a/', '--events', 'all', '--name', ' '],
      /: --name must be text that is not blank/,
    ],
    [['keys', 'rename', 'an-id', '--name', ' '], /: --name must be text that is not blank/],
    [['keys', 'list', '--base-url', 'http://a/api'], /: --base-url must not end with \/api/],
    [
      ['keys', 'list', '--base-url', 'http://a:s3cret@a/'],
      /: --base-url must not contain credentials: give them separately/,
    ],
    [['keys', 'list', '--base-url', 'a'], /--base-url takes an http or https URL, such as http:\/\/127\.0\.0\.1:4010 /],
    [['keys', 'list', '--public-key', 'a b'], /: --public-key must be visible ASCII/],
  ])('%j exits with 2, before anything is sent', async (args, message) => {
    const { code, errors, output } = await command(...args)
    expect({ code, output }).toEqual({ code: 2, output: '' })
    expect(errors).toMatch(message)
    expect(errors.trim().split('\n')).toHaveLength(1)
    expect(errors).not.toContain('s3cret')
  })

  test('are kept out of the one-line message that the service cannot be reached', async () => {
    const { code, errors } = await finish(['webhooks', 'check', 'an-id', '--base-url', 'http://127.0.0.1:1'], env)
    expect(code).toBe(1)
    expect(errors.trim().split('\n')).toHaveLength(1)
    expect(errors).not.toContain(emulator.credentials.secretKey)
  })
})

describe('A service that is busy', () => {
  /** Serves a service that answers 429 at first, and records the requests. */
  async function busy(retryAfter: string) {
    const asked: string[] = []
    const url = await serveWebhook((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      if (asked.length === 1) response.writeHead(429, { 'retry-after': retryAfter }).end('{"message":"too many"}')
      else response.end('{"status":"success","data":{"webhooks":[],"total":0}}')
    })
    return { asked, env: { ...env, MEDIA_WEBHOOKS_BASE_URL: new URL(url).origin } }
  }

  test('is asked again after the pause that it wants, and the command says so meanwhile', async () => {
    const { env } = await busy('0.2')
    const { code, errors } = await finish(['webhooks', 'list', '--json'], env)
    expect({ code, errors }).toEqual({
      code: 0,
      errors: 'webhook.list: the service answered 429: too many; trying again in 0.2 s\n',
    })
  })

  test('is not asked for a second check', async () => {
    const { asked, env } = await busy('0')
    const { code, errors } = await finish(['webhooks', 'check', 'an-id'], env)
    expect({ code, errors }).toEqual({
      code: 1,
      errors: 'media-webhooks: webhook.check: the service answered 429: too many\n',
    })
    expect(asked).toEqual(['POST /api/webhooks/check/an-id'])
  })
})
