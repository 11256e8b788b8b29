import { describe, expect, test, vi } from 'vitest'
import { profiles } from '../../../../src/service/emulator/sending/profile.ts'
import { subscriptionFlags, type Webhook } from '../../../../src/service/emulator/workspace/webhooks.ts'
import { answered, aUuid, serveApi, unanswered } from './served-api.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

describe('creating a webhook', () => {
  test('answers 201 with the whole webhook, in which omitted event flags are false, as observed', async () => {
    const { call, workspace } = await serveApi({ profile: 'observed' })
    const { status, body } = await call('POST', '/webhooks', {
      name: ' my webhook ',
      url: 'https://example.org/hooks?token=x',
      file_received: true,
      encoding_started: false,
    })

    expect(status).toBe(201)
    expect(body).toEqual({
      status: 'success',
      data: {
        webhook: {
          id: expect.stringMatching(uuid),
          user_id: workspace.userId,
          name: 'my webhook',
          url: 'https://example.org/hooks?token=x',
          file_received: true,
          encoding_started: false,
          partial_finished: false,
          encoding_finished: false,
          encoding_failed: false,
          created_at: '2026-03-01T00:00:00.000000Z',
          updated_at: '2026-03-01T00:00:00.000000Z',
          last_triggered_at: null,
        },
      },
    })
  })

  test('needs nothing but a URL, as documented', async () => {
    const { call } = await serveApi()
    const { status, body } = await call('POST', '/webhooks', { url: 'https://example.org/hooks' })
    expect(status).toBe(201)
    const { id, ...webhook } = body.data.webhook
    expect(id).toMatch(/^[0-9a-f]{24}$/)
    expect(Object.fromEntries(subscriptionFlags.map((flag) => [flag, webhook[flag]]))).toEqual({
      file_received: false,
      encoding_started: false,
      partial_finished: false,
      encoding_finished: false,
      encoding_failed: false,
    })
  })

  test.each(profiles)('sets the default name for a blank one with the profile %s', async (profile) => {
    const { webhook } = await serveApi({ profile })
    for (const fields of [{}, { name: '' }, { name: '  ' }]) {
      expect(await webhook(fields)).toMatchObject({ name: 'default-name-webhook' })
    }
  })

  test('keeps a name of any length as it is, as documented', async () => {
    const { call, webhook } = await serveApi()
    const name = ` ${'x'.repeat(1_000)} `
    const { id } = await webhook({ name })
    await call('PATCH', `/webhooks/${id}`, { name: `${name}y` })
    expect((await call('GET', `/webhooks/${id}`)).body.data.webhook.name).toBe(`${name}y`)
  })

  test('accepts a form', async () => {
    const { request, call } = await serveApi()
    const headers = { authorization: 'Bearer account-token' }
    const body = new URLSearchParams({ url: 'http://127.0.0.1:1/ü', name: 'a form', encoding_failed: 'true' })
    const created = await request('POST', '/webhooks', { headers, body })
    expect(created.status).toBe(201)
    const { id } = created.body.data.webhook
    expect(created.body.data.webhook).toMatchObject({ name: 'a form', url: 'http://127.0.0.1:1/ü' })

    const patch = new URLSearchParams({ encoding_failed: 'false', file_received: 'true' })
    expect((await request('PATCH', `/webhooks/${id}`, { headers, body: patch })).status).toBe(200)
    expect((await call('GET', `/webhooks/${id}`)).body.data.webhook).toMatchObject({
      encoding_failed: false,
      file_received: true,
    })
  })

  test('keeps a URL of any length, because no limit is documented or was observed', async () => {
    const { webhook } = await serveApi()
    const url = `https://example.org/hooks?token=${'x'.repeat(10_000)}`
    expect(await webhook({ url })).toMatchObject({ url })
  })

  test('counts a name in characters, not in UTF-16 code units, as observed', async () => {
    const { webhook } = await serveApi({ profile: 'observed' })
    expect(await webhook({ name: '🎬'.repeat(100) })).toMatchObject({ name: '🎬'.repeat(100) })
  })

  test('is rejected when there are 10,000', async () => {
    const { call, webhook, workspace } = await serveApi()
    const { id } = await webhook()
    for (let made = 1; made < 10_000; made++)
      workspace.webhooks.create({ name: 'one of many', url: 'http://a.example' })
    const rejected = await call('POST', '/webhooks', { url: 'http://a.example', file_received: true })
    expect(rejected.status).toBe(400)
    expect(rejected.body.message).toBe('the limit of 10000 webhooks is reached: delete some first')

    await call('DELETE', `/webhooks/${id}`)
    expect((await call('POST', '/webhooks', { url: 'http://a.example', file_received: true })).status).toBe(201)
  })
})

describe('a webhook', () => {
  test.each(profiles)('can be read with the profile %s', async (profile) => {
    const { call, webhook } = await serveApi({ profile })
    const created = await webhook()
    const { status, body } = await call('GET', `/webhooks/${created.id}`)
    expect(status).toBe(200)
    expect(body).toEqual({ status: 'success', data: { webhook: created } })
  })

  test('is found by its UUID in capitals, as observed', async () => {
    const { call, webhook } = await serveApi({ profile: 'observed' })
    const { id } = await webhook()
    expect((await call('GET', `/webhooks/${id.toUpperCase()}`)).body.data.webhook.id).toBe(id)
  })

  test('is not found by any other id, in any form', async () => {
    const { call } = await serveApi()
    for (const id of ['1', 'check', '%2f', '%', aUuid, 'é']) {
      for (const method of ['GET', 'DELETE']) {
        const { status, body } = await call(method, `/webhooks/${id}`)
        expect([status, body.message], id).toEqual([404, 'there is no webhook with this id'])
      }
    }
  })

  test.each(['PATCH', 'PUT'])('changes only the fields of a %s', async (method) => {
    const { call, webhook, pass } = await serveApi()
    const created = await webhook({ name: 'before' })
    pass(1.5)
    const { status, body } = await call(method, `/webhooks/${created.id}`, { name: 'after', file_received: true })
    expect(status).toBe(200)
    expect(body).toEqual({ status: 'success', message: 'the webhook was updated' })
    expect((await call('GET', `/webhooks/${created.id}`)).body.data.webhook).toEqual({
      ...created,
      name: 'after',
      file_received: true,
      updated_at: '2026-03-01T00:00:01.500000Z',
    })
  })

  test('shows when a delivery was last acknowledged', async () => {
    const { call, webhook, pass, workspace } = await serveApi()
    const created = await webhook()
    pass(60)
    workspace.webhooks.triggered(created.id)
    expect((await call('GET', `/webhooks/${created.id}`)).body.data.webhook).toEqual({
      ...created,
      last_triggered_at: '2026-03-01T00:01:00.000000Z',
    })
  })

  test('that is deleted does not come back when a delivery to it is acknowledged', async () => {
    const { call, webhook, workspace } = await serveApi()
    const { id } = await webhook()
    await call('DELETE', `/webhooks/${id}`)
    workspace.webhooks.triggered(id)
    expect((await call('GET', '/webhooks')).body.data).toEqual({ webhooks: [], total: 0 })
  })

  test('is found by the events it is subscribed to', async () => {
    const { webhook, workspace } = await serveApi()
    const [one, other] = [await webhook({ file_received: true }), await webhook()]
    expect(workspace.webhooks.subscribedTo('encoding_finished')).toEqual([one, other])
    expect(workspace.webhooks.subscribedTo('file_received')).toEqual([one])
    expect(workspace.webhooks.subscribedTo('encoding_failed')).toEqual([])
  })

  test('does not exist after its deletion', async () => {
    const { call, webhook } = await serveApi()
    const { id } = await webhook()
    const { status, body } = await call('DELETE', `/webhooks/${id}`)
    expect(status).toBe(200)
    expect(body).toEqual({ status: 'success', message: 'the webhook was deleted' })
    for (const method of ['GET', 'DELETE']) expect((await call(method, `/webhooks/${id}`)).status).toBe(404)
  })

  test('notifies of its creation, changes and deletion', async () => {
    const { call, webhook, changes } = await serveApi()
    const told: unknown[] = []
    changes.subscribe((change) => told.push(change))
    const { id } = await webhook()
    await call('PATCH', `/webhooks/${id}`, { name: 'x' })
    await call('DELETE', `/webhooks/${id}`)
    await call('DELETE', `/webhooks/${id}`)
    expect(told).toEqual(Array(3).fill({ kind: 'webhooks', id }))
  })
})

describe('a test delivery', () => {
  test('answers 200 when it was acknowledged', async () => {
    const checked: Webhook[] = []
    const { call, webhook } = await serveApi({
      check: async (webhook) => {
        checked.push(webhook)
        return answered(200)
      },
    })
    const created = await webhook()
    const { status, body } = await call('POST', `/webhooks/check/${created.id}`)
    expect(status).toBe(200)
    expect(body).toEqual({ status: 'success', message: 'the test delivery was acknowledged' })
    expect(checked).toEqual([created])
  })

  test.each([
    [answered(401), 401, 'fail', 'answered 401'],
    [answered(404), 404, 'fail', 'answered 404'],
    [answered(500), 500, 'error', 'answered 500'],
    [answered(503), 503, 'error', 'answered 503'],
    [answered(599), 599, 'error', 'answered 599'],
    // Statuses that cannot be passed on, or would look like a success.
    [answered(101), 400, 'fail', 'answered 101'],
    [answered(202), 400, 'fail', 'answered 202'],
    [answered(204), 400, 'fail', 'answered 204'],
    [answered(304), 400, 'fail', 'answered 304'],
    [answered(302), 400, 'fail', 'answered 302'],
    [answered(999), 400, 'fail', 'answered 999'],
    [unanswered('timeout', 'no answer within 1000 ms'), 400, 'fail', 'no answer within 1000 ms'],
    [unanswered('connection', 'ECONNREFUSED'), 400, 'fail', 'ECONNREFUSED'],
  ])('that failed (%#) shows the reason', async (record, status, word, how) => {
    const { call, webhook } = await serveApi({ check: async () => record })
    const { id } = await webhook()
    const answer = await call('POST', `/webhooks/check/${id}`)
    expect(answer.status).toBe(status)
    expect(answer.body).toEqual({ status: word, message: `the test delivery failed: ${how}` })
  })

  test('is not made for an unknown webhook', async () => {
    const { call } = await serveApi({
      profile: 'observed',
      check: () => {
        throw new Error('made anyway')
      },
    })
    expect((await call('POST', `/webhooks/check/${aUuid}`)).status).toBe(404)
    expect((await call('POST', '/webhooks/check/1')).status).toBe(400)
  })

  test('that cannot be made answers 500, and names the place to look', async () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    const { call, webhook } = await serveApi({ check: () => Promise.reject(new Error('a fault of the emulator')) })
    const { id } = await webhook()
    const { status, body } = await call('POST', `/webhooks/check/${id}`)
    expect(status).toBe(500)
    expect(body).toEqual({ status: 'error', message: expect.stringContaining('internal error in the emulator') })
    expect(body.message).not.toContain('a fault of')
    expect(error).toHaveBeenCalledOnce()
    error.mockRestore()
  })
})
