import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { EventType, Receiver } from '../../../src/index.ts'
import { type Client, createClient, registerWebhook, type Webhook } from '../../../src/service/client/index.ts'
import { createEmulator, type Profile } from '../../../src/service/emulator/index.ts'
import { profiles } from '../../../src/service/emulator/sending/profile.ts'
import { receiverWith } from '../../receiver/listening-receiver.ts'
import { untyped } from '../../support/untyped.ts'
import { cut, failureOf, oneWebhook, serve } from './scripted-service.ts'

async function start(profile: Profile) {
  const emulator = await createEmulator({ profile })
  onTestFinished(() => emulator.close())
  const client = createClient(emulator.credentials, { baseUrl: emulator.url })
  const all = async () => {
    const webhooks: Webhook[] = []
    for await (const webhook of client.webhook.listAll()) webhooks.push(webhook)
    return webhooks
  }
  return { client, all }
}

const handling = (...types: EventType[]): Receiver => receiverWith().on(types, () => {})

const none = {
  fileReceived: false,
  encodingStarted: false,
  partialFinished: false,
  encodingFinished: false,
  encodingFailed: false,
}
const url = 'https://example.com/hooks?token=the-secret'
const name = 'production'

describe.each(profiles)('registerWebhook with the profile %s', (profile) => {
  test('creates a webhook for the events that have handlers', async () => {
    const { client, all } = await start(profile)
    const report = await registerWebhook(client, handling('encoding.finished', 'partial.finished'), { url, name })
    expect(report).toEqual({ action: 'created', data: { webhook: expect.any(Object) }, duplicates: [] })
    expect(report.data.webhook).toMatchObject({ ...none, url, name, encodingFinished: true, partialFinished: true })
    expect(await all()).toEqual([report.data.webhook])
  })

  test('asks for all five events with onAny', async () => {
    const { client } = await start(profile)
    const {
      data: { webhook },
    } = await registerWebhook(
      client,
      receiverWith().onAny(() => {}),
      { url },
    )
    for (const flag of Object.keys(none)) expect(webhook).toHaveProperty(flag, true)
  })

  test('changes nothing if the webhook is as it should be, however often it is called', async () => {
    const { client, all } = await start(profile)
    const first = await registerWebhook(client, handling('encoding.finished'), { url, name })
    for (const registration of [
      { url, name },
      { url, name: ` ${name} ` },
      { url },
      { url: url.replace('com/', 'com:443/') },
    ]) {
      const report = await registerWebhook(client, handling('encoding.finished'), registration)
      expect(report).toEqual({ action: 'unchanged', data: first.data, duplicates: [] })
    }
    expect(await all()).toEqual([first.data.webhook])
  })

  test('changes the events and the name of the webhook with the URL', async () => {
    const { client, all } = await start(profile)
    const {
      data: { webhook },
    } = await registerWebhook(client, handling('encoding.finished', 'file.received'), { url })
    const report = await registerWebhook(client, handling('encoding.failed', 'file.received'), { url, name })
    expect(report.action).toBe('updated')
    expect(report.data.webhook).toMatchObject({
      ...none,
      id: webhook.id,
      url,
      name,
      fileReceived: true,
      encodingFailed: true,
    })
    expect(await all()).toEqual([report.data.webhook])
  })

  test('changes the URL of the webhook with the name', async () => {
    const { client, all } = await start(profile)
    const {
      data: { webhook },
    } = await registerWebhook(client, handling('encoding.finished'), { url, name })
    const moved = await registerWebhook(client, handling('encoding.finished'), { url: `${url}-new`, name })
    expect(moved).toMatchObject({ action: 'updated', data: { webhook: { id: webhook.id, url: `${url}-new` } } })
    expect(await all()).toEqual([moved.data.webhook])
  })

  test('prefers the webhook with the URL to the one with the name', async () => {
    const { client } = await start(profile)
    await client.webhook.create({ url: 'https://other.example.com', name, encodingFinished: true })
    const { data } = await client.webhook.create({ url, name: 'another', encodingFinished: true })
    const report = await registerWebhook(client, handling('encoding.failed'), { url, name })
    expect(report).toMatchObject({
      action: 'updated',
      data: { webhook: { id: data.webhook.id, encodingFailed: true } },
    })
  })

  test('leaves no two webhooks with one name, renames no other, and reports both', async () => {
    const { client, all } = await start(profile)
    const named = await client.webhook.create({ url: 'https://other.example.com', name, encodingFinished: true })
    const other = await client.webhook.create({ url, name: 'another', encodingFinished: true })
    for (let start = 0; start < 2; start++) {
      const report = await registerWebhook(client, handling('encoding.finished'), { url, name })
      expect(report).toEqual({
        action: 'unchanged',
        data: other.data,
        duplicates: [named.data.webhook],
      })
    }
    expect((await all()).map((webhook) => webhook.name)).toEqual([name, 'another'])
  })

  test('prefers the webhook with the URL and the name to an older one with the URL alone', async () => {
    const { client, all } = await start(profile)
    const older = await client.webhook.create({ url, name: 'another', encodingFinished: true })
    const { data } = await client.webhook.create({ url, name, encodingFinished: true })
    const report = await registerWebhook(client, handling('encoding.finished'), { url, name })
    expect(report).toEqual({ action: 'unchanged', data, duplicates: [older.data.webhook] })
    expect((await all()).map((webhook) => webhook.name)).toEqual(['another', name])
  })

  test('reports the others of several webhooks with the name', async () => {
    const { client } = await start(profile)
    for (const path of ['a', 'b']) {
      await client.webhook.create({ url: `https://example.com/${path}`, name, encodingFinished: true })
    }
    const report = await registerWebhook(client, handling('encoding.finished'), { url, name })
    expect(report).toMatchObject({
      action: 'updated',
      data: { webhook: { url, name } },
      duplicates: [{ url: 'https://example.com/b', name }],
    })
  })

  test('reports a webhook with the name that another server has created meanwhile', async () => {
    const { client } = await start(profile)
    const watched: Client['webhook'] = {
      ...client.webhook,
      async create(params, options) {
        await client.webhook.create({ ...params, url: `${url}-of-another-server` })
        return client.webhook.create(params, options)
      },
    }
    const report = await registerWebhook({ webhook: watched }, handling('encoding.finished'), { url, name })
    expect(report).toMatchObject({
      action: 'created',
      data: { webhook: { url, name } },
      duplicates: [{ url: `${url}-of-another-server`, name }],
    })
  })

  test('finds its webhook among many', async () => {
    const { client } = await start(profile)
    for (let index = 0; index < 120; index++) {
      await client.webhook.create({ url: `https://example.com/${index}`, fileReceived: true })
    }
    const {
      data: { webhook },
    } = await registerWebhook(client, handling('encoding.finished'), { url })
    expect(await registerWebhook(client, handling('encoding.finished'), { url })).toMatchObject({
      action: 'unchanged',
      data: { webhook },
    })
  })

  test('uses the oldest of several webhooks with the URL, and reports the others without touching them', async () => {
    const { client, all } = await start(profile)
    for (const each of ['a', 'b', 'c']) await client.webhook.create({ url, name: each, fileReceived: true })
    const [a, b, c] = await all()
    const report = await registerWebhook(client, handling('encoding.finished'), { url })
    expect(report).toMatchObject({
      action: 'updated',
      data: { webhook: { id: a?.id, encodingFinished: true } },
      duplicates: [b, c],
    })
    expect(await all()).toHaveLength(3)
  })

  test('sends only what differs', async () => {
    const { client, requests } = await serve(
      {
        body: { data: { webhooks: [{ id: 'w1', url, name, encoding_finished: true, file_received: true }], total: 1 } },
      },
      { body: { status: 'success' } },
      oneWebhook(),
    )
    await registerWebhook(client, handling('encoding.finished', 'encoding.failed'), { url, name })
    expect(requests.map(({ method }) => method)).toEqual(['GET', 'PATCH', 'GET'])
    expect(JSON.parse(requests[1]?.body ?? '')).toEqual({ file_received: false, encoding_failed: true })
  })

  test('starts over, once, if the webhook it found is deleted before it can be changed', async () => {
    const { client, all } = await start(profile)
    const {
      data: { webhook },
    } = await registerWebhook(client, handling('encoding.finished'), { url })
    const watched: Client['webhook'] = {
      ...client.webhook,
      async update(id, params, options) {
        await client.webhook.delete(id)
        return client.webhook.update(id, params, options)
      },
    }
    const report = await registerWebhook({ webhook: watched }, handling('encoding.failed'), { url })
    expect(report).toMatchObject({ action: 'created', data: { webhook: { ...none, encodingFailed: true } } })
    expect(report.data.webhook.id).not.toBe(webhook.id)
    expect(await all()).toEqual([report.data.webhook])

    const { client: lost, requests } = await serve({ status: 404 })
    await failureOf('not_found', registerWebhook(lost, handling('encoding.failed'), { url }))
    expect(requests).toHaveLength(2)
  })

  test.each<[string, Receiver, object, RegExp]>([
    ['no handlers', receiverWith(), { url }, /the receiver has no handlers: register them before/],
    ['no URL', handling('encoding.finished'), {}, /url must be an http or https URL/],
    ['no http URL', handling('encoding.finished'), { url: 'file:///the-secret' }, /url must be an http or https URL/],
    ['a blank name', handling('encoding.finished'), { url, name: ' ' }, /name must be text that is not blank/],
    ['a typo', handling('encoding.finished'), { url, nmae: 'x' }, /there is no option nmae; there are url, name/],
  ])('rejects with invalid_option, given %s', async (_, receiver, registration, message) => {
    const { client, requests } = await serve({})
    const call = registerWebhook(client, receiver, registration as { url: string })
    await expect(call).rejects.toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(message) }),
    )
    expect(requests).toEqual([])
  })

  test('rejects with invalid_option, given something other than a client and a receiver', async () => {
    const { client } = await serve({})
    for (const other of [{}, undefined, null].map(untyped)) {
      const receiver = handling('encoding.finished')
      await expect(registerWebhook(client, other, { url })).rejects.toMatchObject({
        code: 'invalid_option',
        message: 'registerWebhook: the second argument must be a receiver from createReceiver()',
      })
      await expect(registerWebhook(other, receiver, { url })).rejects.toMatchObject({
        code: 'invalid_option',
        message: 'registerWebhook: the first argument must be a client from createClient()',
      })
    }
  })

  test('fails with the error of the client, and can be aborted', async () => {
    const { client } = await serve(cut)
    const register = (signal?: AbortSignal) =>
      registerWebhook(client, handling('encoding.finished'), { url }, { signal })
    await failureOf('connection', register())
    await failureOf('aborted', register(AbortSignal.abort()))
  })
})

describe('Several servers that start at the same time', () => {
  test.each(profiles)('end up with one webhook with the profile %s, and all report it', async (profile) => {
    const { client, all } = await start(profile)
    const receiver = handling('encoding.finished')
    const reports = await Promise.all(Array.from({ length: 5 }, () => registerWebhook(client, receiver, { url, name })))
    const [left, ...others] = await all()
    expect(others).toEqual([])
    expect(reports.map(({ data }) => data.webhook.id)).toEqual(reports.map(() => left?.id))
    expect(reports.filter(({ action }) => action === 'created')).toHaveLength(1)
  })

  test('end up with one webhook, in any order of the answers to their calls', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async (scheduler) => {
        const service = memoryService(scheduler)
        const receiver = handling('encoding.finished')
        const reports = await scheduler.waitFor(
          Promise.all([1, 2, 3].map(() => registerWebhook({ webhook: service.api }, receiver, { url, name }))),
        )
        expect(service.webhooks).toHaveLength(1)
        for (const { data } of reports) expect(data.webhook.id).toBe(service.webhooks[0]?.id)
      }),
    )
  })

  test.each(profiles)('with the profile %s never delete a webhook that another server created', async (profile) => {
    const { client, all } = await start(profile)
    const receiver = handling('encoding.finished')
    const deleted: string[] = []
    const created: string[] = []
    const watched: Client['webhook'] = {
      ...client.webhook,
      async create(params, options) {
        // Both servers have seen an empty list, and the other one is faster.
        const other = await client.webhook.create({ url, name: 'from the faster server', encodingStarted: true })
        created.push(other.data.webhook.id)
        const own = await client.webhook.create(params, options)
        created.push(own.data.webhook.id)
        return own
      },
      delete(id, options) {
        deleted.push(id)
        return client.webhook.delete(id, options)
      },
    }
    const report = await registerWebhook({ webhook: watched }, receiver, { url, name })
    expect(deleted).toEqual([created[1]])
    expect(report).toMatchObject({
      action: 'updated',
      data: { webhook: { id: created[0], name, encodingFinished: true } },
    })
    expect(await all()).toEqual([report.data.webhook])
  })
})

/** A service in memory that takes calls in an order chosen by the scheduler. */
function memoryService(scheduler: fc.Scheduler) {
  const webhooks: Webhook[] = []
  let count = 0
  const soon = async <T>(act: () => T): Promise<T> => {
    await scheduler.schedule(Promise.resolve())
    const result = act()
    await scheduler.schedule(Promise.resolve())
    return result
  }
  const api: Client['webhook'] = {
    list: expect.fail,
    check: expect.fail,
    async *listAll() {
      yield* await soon(() => [...webhooks])
    },
    get: (id) =>
      soon(() => ({ status: 'success', data: { webhook: webhooks.find((each) => each.id === id) as Webhook } })),
    create: (params) =>
      soon(() => {
        const webhook = {
          ...params,
          id: `w${count++}`,
          createdAt: `2026-03-01T00:00:00.${String(count).padStart(6, '0')}Z`,
        }
        webhooks.push(webhook)
        return { status: 'success', data: { webhook } }
      }),
    update: (id, params) =>
      soon(() => {
        const index = webhooks.findIndex((each) => each.id === id)
        webhooks[index] = { ...(webhooks[index] as Webhook), ...params }
        return { status: 'success' }
      }),
    delete: (id) =>
      soon(() => {
        webhooks.splice(
          webhooks.findIndex((each) => each.id === id),
          1,
        )
        return { status: 'success' }
      }),
  }
  return { webhooks, api }
}
