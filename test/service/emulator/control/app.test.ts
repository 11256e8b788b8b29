import { describe, expect, test } from 'vitest'
import { serveWebhook } from '../../../support/serve.ts'
import { ask } from '../ask.ts'
import { answering, api, emulate, receive, subscribe } from '../started-emulator.ts'

const json = { 'content-type': 'application/json' }
const chunked = { 'transfer-encoding': 'chunked' }

describe('POST /emulator/media', () => {
  test('uploads a media item and sends its events', async () => {
    const emulator = await emulate()
    const receiver = await receive()
    await subscribe(emulator, receiver.url)
    const made = await ask(`${emulator.url}/emulator/media`, {
      method: 'POST',
      body: { title: 'Holiday.mp4', qualities: ['720p'], mediaType: 'audio' },
    })
    expect(made).toMatchObject({
      status: 201,
      body: {
        media: { title: 'Holiday.mp4', qualities: ['720p'], mediaType: 'audio', fails: false, state: 'encoding' },
      },
    })
    await emulator.settled()
    expect(receiver.events).toHaveLength(4)
    const { id } = made.body.media
    const asked = await ask(`${emulator.url}/emulator/media/${id}`)
    expect(asked).toMatchObject({ status: 200, body: { media: { id, state: 'finished' } } })
    expect(asked.body.media.timeline).toMatchObject([
      { type: 'file.received' },
      { type: 'encoding.started' },
      { type: 'partial.finished', quality: '720p' },
      { type: 'encoding.finished' },
    ])
    const sendingIds = asked.body.media.timeline.flatMap((entry: { sendingIds: string[] }) => entry.sendingIds)
    expect(sendingIds.toSorted()).toEqual(
      emulator
        .sendings()
        .map(({ id }) => id)
        .toSorted(),
    )
  })

  test('needs no body', async () => {
    const emulator = await emulate()
    const made = await ask(`${emulator.url}/emulator/media`, { method: 'POST' })
    expect(made).toMatchObject({ status: 201, body: { media: { title: 'Untitled.mp4' } } })
  })

  test('may be sent in chunks', async () => {
    const { url } = await emulate()
    const made = await ask(`${url}/emulator/media`, { method: 'POST', headers: chunked, body: { title: '映画' } })
    expect(made).toMatchObject({ status: 201, body: { media: { title: '映画' } } })
  })

  test('is answered 503 while too many events are unfinished', async () => {
    const emulator = await emulate({ maxWaiting: 1 })
    await subscribe(emulator, await serveWebhook(() => {}), ['file_received'])
    emulator.addMedia()
    const rejected = await ask(`${emulator.url}/emulator/media`, { method: 'POST' })
    expect(rejected).toMatchObject({ status: 503, headers: { 'retry-after': '1' }, body: { status: 'error' } })
  })
})

describe('the lists', () => {
  test('of media are read in pages, newest first', async () => {
    const emulator = await emulate()
    const ids = Array.from({ length: 30 }, () => emulator.addMedia().id).reverse()
    const page = async (query: string) => {
      const { body } = await ask(`${emulator.url}/emulator/media${query}`)
      return { ids: body.media.map(({ id }: { id: string }) => id), total: body.total }
    }
    expect(await page('')).toEqual({ ids: ids.slice(0, 25), total: 30 })
    expect(await page('?offset=25&limit=100')).toEqual({ ids: ids.slice(25), total: 30 })
    expect(await page('?offset=30')).toEqual({ ids: [], total: 30 })
  })

  test('of sendings can be filtered by webhook, media and state', async () => {
    const emulator = await emulate({ profile: 'observed' })
    const good = await subscribe(emulator, await serveWebhook(answering(200)), ['file_received', 'encoding_finished'])
    const bad = await subscribe(emulator, await serveWebhook(answering(500)), ['file_received'])
    const [one, other] = [emulator.addMedia(), emulator.addMedia()]
    await emulator.settled()
    const total = async (query: string) => (await ask(`${emulator.url}/emulator/sendings?${query}`)).body.total
    expect(await total('')).toBe(6)
    expect(await total(`webhook_id=${good.id}`)).toBe(4)
    expect(await total(`webhook_id=${bad.id}`)).toBe(2)
    expect(await total(`media_id=${one.id}`)).toBe(3)
    expect(await total('state=failed')).toBe(2)
    expect(await total('state=waiting')).toBe(0)
    expect(await total(`media_id=${other.id}&state=acknowledged&webhook_id=${good.id}`)).toBe(2)
    expect(await total('webhook_id=nobody')).toBe(0)
    const { body } = await ask(`${emulator.url}/emulator/sendings?limit=4&offset=1`)
    expect(body.sendings.map(({ id }: { id: string }) => id)).toEqual(
      emulator
        .sendings()
        .slice(1, 5)
        .map(({ id }) => id),
    )
  })
})

describe('a sending', () => {
  test('shows the request, answer, duration and failure of each delivery', async () => {
    const emulator = await emulate()
    const { id: webhookId } = await subscribe(emulator, await serveWebhook(answering(503, 200)), ['file_received'])
    emulator.addMedia()
    await emulator.settled()
    const id = emulator.sendings()[0]?.id
    const { status, body } = await ask(`${emulator.url}/emulator/sendings/${id}`)
    expect(status).toBe(200)
    expect(body.sending).toMatchObject({ id, webhookId, state: 'acknowledged', payload: { type: 'file.received' } })
    expect(body.sending.deliveries).toMatchObject([
      {
        attempt: 1,
        request: { headers: { 'Content-Type': 'application/json' }, body: expect.stringContaining('"file.received"') },
        startedAt: expect.stringMatching(/^\d{4}-.*Z$/),
        durationMs: expect.any(Number),
        answer: { status: 503 },
        failure: { reason: 'status', message: 'answered 503' },
        retryInMs: 3,
      },
      { attempt: 2, answer: { status: 200 } },
    ])
    expect(body.sending.deliveries[1]).not.toHaveProperty('failure')
  })

  test('is repeated with the behaviour of its webhook or with another one', async () => {
    const emulator = await emulate()
    const { url, events } = await receive()
    await subscribe(emulator, url, ['file_received'])
    emulator.addMedia()
    await emulator.settled()
    const repeat = `${emulator.url}/emulator/sendings/${emulator.sendings()[0]?.id}/repeat`
    const plain = await ask(repeat, { method: 'POST' })
    expect(plain).toMatchObject({ status: 201, body: { sending: { behaviour: {}, deliveries: [] } } })
    const dropped = await ask(repeat, { method: 'POST', body: { fault: 'drop' } })
    expect(dropped).toMatchObject({
      status: 201,
      body: { sending: { behaviour: { fault: 'drop' }, state: 'dropped' } },
    })
    await emulator.settled()
    expect(
      emulator
        .sendings()
        .map(({ id }) => id)
        .slice(0, 2),
    ).toEqual([dropped.body.sending.id, plain.body.sending.id])
    expect(events).toHaveLength(1)
  })

  test('cannot be repeated when its webhook was deleted', async () => {
    const emulator = await emulate()
    const webhook = await subscribe(emulator, await serveWebhook(answering(200)), ['file_received'])
    emulator.addMedia()
    await emulator.settled()
    await api(emulator, 'DELETE', `/webhooks/${webhook.id}`)
    const repeat = `${emulator.url}/emulator/sendings/${emulator.sendings()[0]?.id}/repeat`
    expect(await ask(repeat, { method: 'POST' })).toMatchObject({
      status: 400,
      body: { status: 'fail', message: 'the webhook of this sending was deleted' },
    })
  })
})

describe('the behaviour of a webhook', () => {
  test('can be set and read, and is deleted with the webhook', async () => {
    const emulator = await emulate()
    const { id } = await subscribe(emulator, await serveWebhook(answering(200)), ['file_received'])
    const url = `${emulator.url}/emulator/webhooks/${id}/behaviour`
    const behaviour = { format: 'envelope', fault: 'duplicate', sign: { scheme: 'url-token', secret: 't' } }
    expect(await ask(url)).toMatchObject({ status: 200, body: { behaviour: {} } })
    expect(await ask(url, { method: 'PUT', body: behaviour })).toMatchObject({ status: 200, body: { behaviour } })
    expect((await ask(url)).body).toEqual({ behaviour })
    emulator.addMedia()
    await emulator.settled()
    expect(emulator.sendings()[0]).toMatchObject({ behaviour, deliveries: [{}, { copy: true }] })
    expect((await ask(url, { method: 'PUT', body: {} })).body).toEqual({ behaviour: {} })
    await api(emulator, 'DELETE', `/webhooks/${id}`)
    expect((await ask(url)).status).toBe(404)
  })
})

describe('GET /emulator/settled', () => {
  test('answers when nothing is unfinished', async () => {
    const emulator = await emulate()
    const { url, events } = await receive()
    await subscribe(emulator, url)
    emulator.addMedia({ qualities: ['360p'] })
    const settled = await ask(`${emulator.url}/emulator/settled?timeout_ms=10000`)
    expect(settled).toMatchObject({ status: 200, body: { settled: true } })
    expect(events).toHaveLength(4)
  })

  test('answers 504 after its timeout, and names what is unfinished', async () => {
    const emulator = await emulate({ timeScale: 1 })
    emulator.addMedia()
    expect(await ask(`${emulator.url}/emulator/settled?timeout_ms=5`)).toMatchObject({
      status: 504,
      body: { status: 'error', message: 'not settled after 5 ms: 1 media encoding' },
    })
  })
})

describe('bad input', () => {
  const behaviour = '/webhooks/:webhook/behaviour'
  const repeat = '/sendings/:sending/repeat'
  test.each<[number, string, string, object, string | RegExp]>([
    [400, 'POST', '/media', { body: { tilte: 'x' } }, 'media has no field tilte'],
    [400, 'POST', '/media', { body: { qualities: 'all' } }, /^media.qualities must be a list/],
    [400, 'POST', '/media', { body: [] }, 'media must be an object'],
    [400, 'POST', '/media', { body: '{', headers: json }, 'the body is not JSON'],
    [400, 'POST', '/media', { body: 'null', headers: json }, 'media must be an object'],
    [415, 'POST', '/media', { body: '{}' }, 'the content type of the body must be application/json'],
    [415, 'POST', '/media', { body: 'title=x', headers: { 'content-type': 'text/plain' } }, /^the content type/],
    [413, 'POST', '/media', { body: { title: 'x'.repeat(70_000) } }, 'the body is larger than 65536 bytes'],
    [413, 'POST', '/media', { body: 'x'.repeat(70_000), headers: chunked }, 'the body is larger than 65536 bytes'],
    [
      415,
      'POST',
      '/media',
      { body: '{}', headers: { ...json, 'content-encoding': 'gzip' } },
      /without Content-Encoding$/,
    ],
    [405, 'DELETE', '/media', {}, '/emulator/media takes GET, HEAD, POST'],
    [400, 'GET', '/media?limit=0', {}, 'query.limit must be a whole number from 1 to 100'],
    [400, 'GET', '/media?limit=101', {}, 'query.limit must be a whole number from 1 to 100'],
    [400, 'GET', '/media?limit=', {}, 'query.limit must be a whole number from 1 to 100'],
    [400, 'GET', '/media?limit=1e1', {}, 'query.limit must be a whole number from 1 to 100'],
    [400, 'GET', '/media?offset=-1', {}, /^query.offset must be a whole number from 0/],
    [400, 'GET', '/media?state=done', {}, 'query has no field state'],
    [404, 'GET', '/media/nothing', {}, 'there is no media with this id'],
    [405, 'PUT', '/media/nothing', {}, '/emulator/media/nothing takes GET, HEAD'],
    [400, 'GET', '/sendings?state=done', {}, /^query.state must be one of waiting, /],
    [400, 'GET', '/sendings?offset=x', {}, /^query.offset must be a whole number from 0/],
    [405, 'POST', '/sendings', {}, '/emulator/sendings takes GET, HEAD'],
    [404, 'GET', '/sendings/nothing', {}, 'there is no sending with this id'],
    [405, 'DELETE', '/sendings/nothing', {}, '/emulator/sendings/nothing takes GET, HEAD'],
    [404, 'POST', '/sendings/nothing/repeat', {}, 'there is no sending with this id'],
    [400, 'POST', repeat, { body: { fault: 'x' } }, /^behaviour.fault must be one of/],
    [415, 'POST', repeat, { body: '{}' }, /^the content type/],
    [405, 'GET', repeat, {}, /takes POST$/],
    [404, 'GET', '/webhooks/nothing/behaviour', {}, 'there is no webhook with this id'],
    [404, 'PUT', '/webhooks/nothing/behaviour', { body: {} }, 'there is no webhook with this id'],
    [400, 'PUT', behaviour, { body: { fault: 'x' } }, /^behaviour.fault must be one of/],
    [400, 'PUT', behaviour, { body: { sign: { scheme: 'standard-webhooks', secret: '?' } } }, /^standardWebhooks: /],
    [400, 'PUT', behaviour, { body: '', headers: json }, 'the body is missing'],
    [415, 'PUT', behaviour, {}, /^the content type/],
    [405, 'DELETE', behaviour, {}, /takes GET, HEAD, PUT$/],
    [400, 'GET', '/settled?timeout_ms=0', {}, /^query.timeout_ms must be a whole number from 1/],
    [400, 'GET', '/settled?timeout=1', {}, 'query has no field timeout'],
    [405, 'POST', '/settled', {}, '/emulator/settled takes GET, HEAD'],
    [405, 'POST', '/events', {}, '/emulator/events takes GET, HEAD'],
    [404, 'GET', '/nothing', {}, 'there is nothing at /emulator/nothing'],
  ])('is answered %d: %s %s %j', async (status, method, path, question, message) => {
    const emulator = await emulate()
    const { id } = await subscribe(emulator, await serveWebhook(answering(200)), ['file_received'])
    emulator.addMedia()
    const { body } = await ask(`${emulator.url}/emulator/sendings`)
    const at = path.replace(':webhook', id).replace(':sending', body.sendings[0].id)
    const rejected = await ask(`${emulator.url}/emulator${at}`, { method, ...question })
    expect(rejected).toMatchObject({ status, body: { status: 'fail' } })
    expect(rejected.body.message).toMatch(message)
    if (status === 405) expect(rejected.body.message).toContain(`takes ${rejected.headers.allow}`)
  })
})
