import { describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { createEmulator } from '../../src/emulator/index.ts'
import { createReceiver, type MediaEvent, urlToken } from '../../src/index.ts'
import { mounts } from '../adapters/mounts.ts'
import { silent } from '../receiver/fixture.ts'
import { after, failureOf } from './fixture.ts'

/** Starts an emulated service for one test, and a client of it. */
async function start() {
  const emulator = await createEmulator({ timeScale: 0.01 })
  after(() => emulator.close())
  const { credentials, url } = emulator
  return { emulator, credentials, url, client: createClient(credentials, { baseUrl: url }) }
}

const url = 'https://example.com/hooks'
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)

describe('API keys', () => {
  test('are created, listed, renamed and deleted', async () => {
    const { client } = await start()
    const { status, data } = await client.apiKey.create({ apiKeyName: 'deploys', ttl: 3_600, type: 'full_access' })
    expect(status).toBe('success')
    expect(data.apiKey).toMatchObject({
      name: 'deploys',
      publicKey: expect.any(String),
      secret: expect.any(String),
      truncatedSecret: expect.any(String),
      ttl: 3_600,
      type: 'full_access',
      createdAt: timestamp,
      expiredAt: timestamp,
    })
    const { id } = data.apiKey
    expect(await client.apiKey.update(id, { apiKeyName: 'releases' })).toEqual({
      status: 'success',
      message: expect.any(String),
    })

    await client.apiKey.create({ apiKeyName: 'a reader', ttl: 60, type: 'only_upload' })
    const list = await client.apiKey.list({ sortBy: 'name', orderBy: 'asc', offset: 1, limit: 1 })
    expect(list.data).toMatchObject({ apiKeys: [{ id, name: 'releases', ttl: 3_600 }], total: 2 })
    expect(list.data.apiKeys[0]?.secret).toBeUndefined()

    expect(await client.apiKey.delete(id)).toMatchObject({ status: 'success' })
    expect((await client.apiKey.list({ search: 'releases' })).data).toEqual({ apiKeys: [], total: 0 })
  })

  test('authenticate a client, unless they may only upload', async () => {
    const { client, url: baseUrl } = await start()
    const clientOf = async (type: 'full_access' | 'only_upload') => {
      const { data } = await client.apiKey.create({ apiKeyName: type, ttl: 60, type })
      const { publicKey = '', secret: secretKey = '' } = data.apiKey
      return createClient({ publicKey, secretKey }, { baseUrl })
    }
    expect((await (await clientOf('full_access')).webhook.list()).data.webhooks).toEqual([])
    const uploader = await clientOf('only_upload')
    expect((await failureOf('forbidden', uploader.webhook.list())).status).toBe(403)
  })
})

describe('Webhooks', () => {
  test('are created, read, listed, changed and deleted', async () => {
    const { client } = await start()
    const { data } = await client.webhook.create({ url, name: 'production', encodingFinished: true })
    const { webhook } = data
    expect(webhook).toMatchObject({
      name: 'production',
      url,
      fileReceived: false,
      encodingFinished: true,
      createdAt: timestamp,
      lastTriggeredAt: undefined,
    })
    expect((await client.webhook.get(webhook.id)).data.webhook).toEqual(webhook)

    const message = { status: 'success', message: expect.any(String) }
    const changes = { url: `${url}?v=2`, encodingFinished: false, partialFinished: true, encodingFailed: true }
    expect(await client.webhook.update(webhook.id, changes)).toEqual(message)
    expect((await client.webhook.get(webhook.id)).data.webhook).toMatchObject({ name: 'production', ...changes })

    await client.webhook.create({ url: 'https://a.example.com', fileReceived: true, encodingStarted: true })
    const listed = async (params: object) => {
      const { data } = await client.webhook.list(params)
      return [data.total, ...data.webhooks.map(({ name }) => name)]
    }
    expect(await listed({ sortBy: 'url', orderBy: 'asc' })).toEqual([2, 'default-name-webhook', 'production'])
    expect(await listed({ partialFinished: true })).toEqual([1, 'production'])
    expect(await listed({ encodingFailed: false })).toEqual([1, 'default-name-webhook'])
    expect(await listed({ search: 'prod' })).toEqual([1, 'production'])
    expect(await listed({ offset: 1 })).toEqual([2, 'default-name-webhook'])

    expect(await client.webhook.delete(webhook.id)).toEqual(message)
    expect((await failureOf('not_found', client.webhook.get(webhook.id))).status).toBe(404)
  })

  test('can be iterated, however many there are', async () => {
    const { client } = await start()
    const names = Array.from({ length: 130 }, (_, index) => `webhook ${index}`)
    for (const name of names) await client.webhook.create({ url, name, fileReceived: true })
    const found: (string | undefined)[] = []
    for await (const { id, name } of client.webhook.listAll({ fileReceived: true })) {
      found.push(name)
      await client.webhook.delete(id)
    }
    expect(found).toEqual(names)
    expect((await client.webhook.list()).data.total).toBe(0)
  })

  test('are checked with a test delivery to a receiver', async () => {
    const { client } = await start()
    const events: MediaEvent[] = []
    const receiver = createReceiver({ verify: urlToken({ secret: 'the-secret' }), logger: silent })
    receiver.onAny((event) => void events.push(event))
    const mounted = await mounts.node(receiver)
    after(mounted.close)
    const create = async (token: string) =>
      (await client.webhook.create({ url: `${mounted.url}?token=${token}`, fileReceived: true })).data.webhook.id

    expect(await client.webhook.check(await create('the-secret'))).toMatchObject({ status: 'success' })
    await receiver.close()
    expect(events).toMatchObject([{ type: 'encoding.started', test: true }])
    // The error has the receiver's own status.
    await failureOf('server', client.webhook.check(await create('the-secret')))
  })
})

describe('The service rejects', () => {
  test('a webhook without events, and says why', async () => {
    const { client } = await start()
    const error = await failureOf('rejected', client.webhook.create({ url }))
    expect(error).toMatchObject({ status: 400, method: 'POST', path: '/api/webhooks' })
    expect(error.serviceMessage).toBeTruthy()
  })

  test('wrong credentials', async () => {
    const { credentials, url: baseUrl } = await start()
    for (const wrong of [{ ...credentials, secretKey: 'the-secret-guess' }, { accessToken: 'the-secret-guess' }]) {
      const client = createClient(wrong, { baseUrl })
      expect((await failureOf('unauthorized', client.webhook.list())).status).toBe(401)
    }
  })

  test('no call with its access token', async () => {
    const { credentials, url: baseUrl } = await start()
    const client = createClient({ accessToken: credentials.accessToken }, { baseUrl })
    expect((await client.apiKey.list()).data).toEqual({ apiKeys: [], total: 0 })
  })
})
