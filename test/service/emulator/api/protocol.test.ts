import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test, vi } from 'vitest'
import { account, aUuid, credentials, keyPair, serveApi } from './served-api.ts'

const paths: readonly (readonly [path: string, methods: readonly string[]])[] = [
  ['/webhooks', ['GET', 'POST']],
  [`/webhooks/${aUuid}`, ['GET', 'PATCH', 'PUT', 'DELETE']],
  [`/webhooks/check/${aUuid}`, ['POST']],
  ['/api_keys', ['GET', 'POST']],
  [`/api_keys/${aUuid}`, ['PATCH', 'DELETE']],
]

describe.each(paths)('%s', (path, methods) => {
  const allow = `${methods.join(', ').replace('GET', 'GET, HEAD')}, OPTIONS`

  test('answers every other method with 405 and names its methods in Allow', async () => {
    const { call } = await serveApi()
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'LINK'].filter((one) => !methods.includes(one))) {
      const { status, headers, body } = await call(method, path)
      expect([status, headers.get('allow')], method).toEqual([405, allow])
      expect(body).toEqual({ status: 'fail', message: expect.stringContaining(method) })
    }
  })

  test('answers OPTIONS with its methods, and without CORS headers', async () => {
    const { request } = await serveApi()
    const headers = { origin: 'http://elsewhere.example', 'access-control-request-method': 'POST' }
    const answer = await request('OPTIONS', path, { headers })
    expect([answer.status, answer.headers.get('allow'), answer.body]).toEqual([204, allow, undefined])
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  test('requires credentials', async () => {
    const { call } = await serveApi()
    for (const method of methods) {
      const { status, headers } = await call(method, path, undefined, {})
      expect([status, headers.get('www-authenticate')], method).toEqual([401, 'Bearer'])
    }
  })

  test('rejects a key that may only upload', async () => {
    const { call, apiKey } = await serveApi()
    const { public_key, secret } = await apiKey({ type: 'only_upload' })
    for (const method of methods) {
      const { status, body } = await call(method, path, undefined, keyPair(public_key, secret))
      expect([status, body.status], method).toEqual([403, 'fail'])
    }
  })
})

test('HEAD is answered like GET, without the body', async () => {
  const { call, webhook } = await serveApi()
  const { id } = await webhook()
  for (const path of ['/webhooks', `/webhooks/${id}`, '/api_keys']) {
    const { status, headers, body } = await call('HEAD', path)
    expect([status, headers.get('content-type'), body]).toEqual([200, 'application/json', undefined])
  }
  expect((await call('HEAD', '/webhooks', undefined, {})).status).toBe(401)
  expect((await call('HEAD', `/webhooks/check/${id}`)).status).toBe(405)
})

test('an unknown path answers 404, with credentials and without', async () => {
  const { call } = await serveApi()
  for (const path of [
    '',
    '/',
    '/videos',
    '/webhooks/',
    `/webhooks/${aUuid}/x`,
    `/webhooks/check/${aUuid}/x`,
    '/Webhooks',
  ]) {
    for (const headers of [account, undefined]) {
      const { status, body } = await call('POST', path, undefined, headers ?? {})
      expect([status, body], path).toEqual([404, { status: 'fail', message: `there is no endpoint at /api${path}` }])
    }
  }
})

test('every answer has exactly the content type application/json', async () => {
  const { call, webhook } = await serveApi()
  const { id } = await webhook()
  const answers = [
    await call('GET', '/webhooks'),
    await call('POST', '/webhooks', {}),
    await call('POST', `/webhooks/check/${id}`),
    await call('GET', '/webhooks', undefined, {}),
    await call('GET', `/webhooks/${aUuid}`),
    await call('PUT', '/webhooks'),
    await call('GET', '/nowhere'),
    await call('POST', '/webhooks', 'x'.repeat(70_000)),
    await call('POST', '/api_keys', undefined),
    await call('POST', '/api_keys', { api_key_name: 'x' }),
    await call('DELETE', `/webhooks/${id}`),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 401, 404, 405, 404, 413, 415, 201, 200])
  expect(new Set(answers.map(({ headers }) => headers.get('content-type')))).toEqual(new Set(['application/json']))
})

describe('a body', () => {
  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset=UTF-8'])(
    'of %s is read',
    async (type) => {
      const { request } = await serveApi()
      const body = JSON.stringify({ api_key_name: 'ключ' })
      const answer = await request('POST', '/api_keys', { body, headers: { ...account, 'content-type': type } })
      expect([answer.status, answer.body.data?.api_key.name]).toEqual([201, 'ключ'])
    },
  )

  test.each(['text/plain', 'multipart/form-data; boundary=x', 'application/jsonp', 'constructor'])(
    'of %s is rejected with 415',
    async (type) => {
      const { request } = await serveApi()
      for (const [method, path] of [
        ['POST', '/webhooks'],
        ['PATCH', `/webhooks/${aUuid}`],
        ['PUT', `/webhooks/${aUuid}`],
        ['POST', '/api_keys'],
        ['PATCH', `/api_keys/${aUuid}`],
      ] as const) {
        const answer = await request(method, path, { body: '{}', headers: { ...account, 'content-type': type } })
        expect([answer.status, answer.body.message]).toEqual([
          415,
          'the content type must be application/json or application/x-www-form-urlencoded',
        ])
      }
    },
  )

  test('without a content type, or with an encoding, is rejected with 415', async () => {
    const { request } = await serveApi()
    expect((await request('POST', '/webhooks', { headers: account })).status).toBe(415)
    const headers = { ...account, 'content-type': 'application/json', 'content-encoding': 'gzip' }
    expect((await request('POST', '/webhooks', { headers, body: '{}' })).status).toBe(415)
  })

  test('is ignored by a test delivery and a deletion', async () => {
    const { request, webhook } = await serveApi()
    const { id } = await webhook()
    const plain = { body: '{', headers: { ...account, 'content-type': 'text/plain' } }
    expect((await request('POST', `/webhooks/check/${id}`, plain)).status).toBe(200)
    expect((await request('DELETE', `/webhooks/${id}`, plain)).status).toBe(200)
  })

  test('of 64 KiB is accepted, and one byte more is rejected with 413', async () => {
    const { request, call } = await serveApi()
    const headers = { ...account, 'content-type': 'application/json' }
    const padded = (size: number) => '{"api_key_name":"x"}'.padEnd(size)
    expect((await request('POST', '/api_keys', { headers, body: padded(65_536) })).status).toBe(201)
    const { status, body } = await request('POST', '/api_keys', { headers, body: padded(65_537) })
    expect([status, body]).toEqual([413, { status: 'fail', message: 'the body is larger than 65536 bytes' }])
    expect((await call('GET', '/api_keys')).body.data.total).toBe(1)
  })

  const head = `POST /api/webhooks HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${credentials.accessToken}\r\ncontent-type: application/json\r\n`

  test('with a Content-Length that is too large is rejected before it is sent', async () => {
    const { port } = await serveApi()
    const socket = connect(port, '127.0.0.1')
    socket.write(`${head}content-length: 1000000000\r\n\r\n{`)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 /)
    socket.destroy()
  })

  test('that never ends is rejected with 413, and its connection is closed', async () => {
    const { port } = await serveApi()
    let answer = ''
    const socket = connect(port, '127.0.0.1')
      .on('data', (data) => {
        answer += data
      })
      // The server closes the connection during these writes.
      .on('error', () => {})
    const pour = () => {
      while (socket.write(chunk));
    }
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
    socket.on('drain', pour).write(`${head}transfer-encoding: chunked\r\n\r\n`)
    pour()
    await new Promise((resolve) => socket.on('close', resolve))
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
  })

  test('that is cut off does not affect other requests', async () => {
    const { port, call } = await serveApi()
    const error = vi.spyOn(console, 'error')
    const socket = connect(port, '127.0.0.1')
    socket.write(`${head}content-length: 1000\r\n\r\n{"url":`)
    await once(socket, 'connect')
    socket.destroy()
    await once(socket, 'close')
    expect((await call('GET', '/webhooks')).body.data.total).toBe(0)
    expect(error).not.toHaveBeenCalled()
    error.mockRestore()
  })

  test('without a content length is read', async () => {
    const { port, call } = await serveApi()
    const socket = connect(port, '127.0.0.1')
    const body = JSON.stringify({ url: 'http://a.example', file_received: true })
    socket.end(
      `${head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    )
    expect(await text(socket)).toMatch(/^HTTP\/1.1 201 /)
    expect((await call('GET', '/webhooks')).body.data.total).toBe(1)
  })
})
