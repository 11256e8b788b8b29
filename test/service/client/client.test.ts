import { describe, expect, onTestFinished, test } from 'vitest'
import { createReceiver, type MediaEvent, urlToken } from '../../../src/index.ts'
import { createClient } from '../../../src/service/client/index.ts'
import { createEmulator, type Profile } from '../../../src/service/emulator/index.ts'
import { profiles } from '../../../src/service/emulator/sending/profile.ts'
import { mounts } from '../../support/mounts.ts'
import { silent } from '../../support/silent.ts'
import { refusingUrl } from '../emulator/sending/targets.ts'
import { failureOf } from './scripted-service.ts'

/** Starts an emulated service for one test, and a client of it. */
async function start(profile: Profile) {
  const emulator = await createEmulator({ timeScale: 0.01, profile })
  onTestFinished(() => emulator.close())
  const { credentials, url } = emulator
  return { emulator, credentials, url, client: createClient(credentials, { baseUrl: url }) }
}

const url = 'https://example.com/hooks'
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)

describe.each(profiles)('With the profile %s,', (profile) => {
  describe('API keys', () => {
    test('are created, listed, renamed and deleted', async () => {
      const { client } = await start(profile)
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
      const { client, url: baseUrl } = await start(profile)
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

  describe('webhooks', () => {
    test('are created, read, listed, changed and deleted', async () => {
      const { client } = await start(profile)
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
      const { client } = await start(profile)
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
      const { client } = await start(profile)
      const events: MediaEvent[] = []
      const receiver = createReceiver({ verify: urlToken({ secret: 'the-secret' }), logger: silent })
      receiver.onAny((event) => void events.push(event), { tests: true })
      const mounted = await mounts.node(receiver)
      onTestFinished(mounted.close)
      const create = async (token: string) =>
        (await client.webhook.create({ url: `${mounted.url}?token=${token}`, fileReceived: true })).data.webhook.id

      expect(await client.webhook.check(await create('the-secret'))).toMatchObject({ status: 'success' })
      await receiver.close()
      expect(events).toMatchObject([{ type: 'encoding.started', test: true }])
      // The error has the receiver's own status.
      await failureOf('server', client.webhook.check(await create('the-secret')))
    })
  })

  describe('the service rejects', () => {
    test('wrong credentials', async () => {
      const { credentials, url: baseUrl } = await start(profile)
      for (const wrong of [{ ...credentials, secretKey: 'the-secret-guess' }, { accessToken: 'the-secret-guess' }]) {
        const client = createClient(wrong, { baseUrl })
        expect((await failureOf('unauthorized', client.webhook.list())).status).toBe(401)
      }
    })

    test('no call with its access token', async () => {
      const { credentials, url: baseUrl } = await start(profile)
      const client = createClient({ accessToken: credentials.accessToken }, { baseUrl })
      expect((await client.apiKey.list()).data).toEqual({ apiKeys: [], total: 0 })
    })
  })
})

test('A webhook without events is created as documented, and rejected as observed', async () => {
  const { data } = await (await start('documented')).client.webhook.create({ url })
  expect(data.webhook).toMatchObject({ url, fileReceived: false, encodingFinished: false })

  const error = await failureOf('rejected', (await start('observed')).client.webhook.create({ url }))
  expect(error).toMatchObject({ status: 400, method: 'POST', path: '/api/webhooks' })
  expect(error.serviceMessage).toContain('must select an event')
})

test('The documented last trigger is the last test delivery, acknowledged or not', async () => {
  const triggers = async (profile: Profile) => {
    const { client } = await start(profile)
    const { webhook } = (await client.webhook.create({ url: await refusingUrl(), fileReceived: true })).data
    await failureOf('rejected', client.webhook.check(webhook.id))
    return (await client.webhook.get(webhook.id)).data.webhook.lastTriggeredAt
  }
  expect(await triggers('documented')).toEqual(timestamp)
  expect(await triggers('observed')).toBeUndefined()
})

test('An id and a name of any form and length are left for the service to judge', async () => {
  const name = 'x'.repeat(101)
  const documented = (await start('documented')).client
  const { webhook } = (await documented.webhook.create({ url, name, fileReceived: true })).data
  expect(webhook.name).toBe(name)
  const { apiKey } = (await documented.apiKey.create({ apiKeyName: name, ttl: 60 })).data
  expect((await documented.apiKey.list({ limit: 1_000 })).data).toMatchObject({ apiKeys: [{ name }], total: 1 })
  await documented.apiKey.update(apiKey.id, { apiKeyName: `${name}y` })
  await failureOf('not_found', documented.webhook.get('not a UUID'))

  const observed = (await start('observed')).client
  const tooLong = 'must have at most 100 characters'
  const rejections = [
    [() => observed.webhook.create({ url, name, fileReceived: true }), `body.name ${tooLong}`],
    [() => observed.apiKey.create({ apiKeyName: name, ttl: 60 }), `body.api_key_name ${tooLong}`],
    [() => observed.apiKey.list({ limit: 101 }), 'query.limit must be a whole number from 1 to 100'],
    [() => observed.webhook.get('not a UUID'), 'id must be a UUID'],
  ] as const
  for (const [call, serviceMessage] of rejections) {
    expect(await failureOf('rejected', call())).toMatchObject({ status: 400, serviceMessage })
  }
})
