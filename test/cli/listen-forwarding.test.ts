import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { freePort } from '../support/free-port.ts'
import { postJson } from '../support/post-json.ts'
import { serveWebhook } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { finish, start } from './program.ts'

const body = encodePayload(samplePayload('encoding.finished', { title: 'Über 📼' }))

interface Arrived {
  readonly url: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly raw: readonly string[]
  readonly body: Buffer
}

/** Starts the user's server. It records its requests. */
async function server(status = 200, answer: (arrived: Arrived) => string = () => 'answer') {
  const arrived: Arrived[] = []
  const url = await serveWebhook(async (incoming, response) => {
    const { url, headers, rawHeaders: raw } = incoming
    const one = { url, headers, raw, body: await buffer(incoming) }
    arrived.push(one)
    response.writeHead(status).end(answer(one))
  })
  return { url, arrived }
}

/** Starts `listen --json`. */
async function listen(...args: string[]) {
  const program = start(['listen', '--port', '0', '--json', ...args])
  const { url, folder } = JSON.parse(await program.line(/"url"/))
  const printed = async (count: number) => (await program.lines(/^{"at"/, count)).map((line) => JSON.parse(line))
  return { program, url: `${url}/hook`, folder, printed }
}

/** Starts `listen --json` with a folder of the test. */
async function listenAndSave(...args: string[]) {
  const save = await temporaryFolder()
  return { ...(await listen('--save', save, ...args)), save }
}

describe('listen --forward-to', () => {
  test('forwards the same bytes and headers, but not those of the connection', async () => {
    const { url: to, arrived } = await server()
    const { url, printed } = await listenAndSave('--forward-to', to)
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': 'go-resty',
      'X-Signature': 'sha256=abc',
      'X-Twice': ['1', '2'],
      Connection: 'close, X-Private',
      'X-Private': 'yes',
      'Keep-Alive': 'timeout=5',
      'Proxy-Authorization': 'Basic abc',
      TE: 'trailers',
      'Accept-Encoding': 'gzip',
    }
    const sent = request(url, { method: 'POST', headers, agent: false })
    sent.end(body)
    const [{ forwarded }] = await printed(1)
    expect(forwarded).toEqual({ durationMs: expect.any(Number), status: 200, answer: 'answer' })

    const [one] = arrived
    expect(one?.body.equals(body)).toBe(true)
    expect(one?.raw).toEqual(expect.arrayContaining(['X-Signature', 'sha256=abc', 'User-Agent', 'go-resty']))
    const { via, ...rest } = one?.headers ?? {}
    expect(via).toMatch(/^1\.1 media-webhooks-[\da-f]{16}$/)
    expect(rest).toEqual({
      'content-type': 'application/json',
      'user-agent': 'go-resty',
      'x-signature': 'sha256=abc',
      'x-twice': '1, 2',
      'content-length': String(body.length),
      host: new URL(to).host,
      connection: 'close',
    })
  })

  test('forwards duplicates and test deliveries, and no delivery that it rejects', async () => {
    const { url: to, arrived } = await server()
    const { url, printed, save } = await listenAndSave('--forward-to', to)
    const check = samplePayload('encoding.started', { media_id: '00000000-0000-0000-0000-000000000000' })
    const answers = [
      await postJson(url, body),
      await postJson(url, body),
      await postJson(url, '{'),
      await postJson(url, check),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 200])
    const all = await printed(4)
    expect(all.filter(({ forwarded }) => forwarded === undefined)).toMatchObject([{ outcome: 'malformed' }])
    expect(arrived).toHaveLength(3)
    expect(await readdir(save)).toHaveLength(3)
  })

  test("adds the delivery's query to a URL without one, and keeps that of another", async () => {
    const { url: to, arrived } = await server()
    const first = await listenAndSave('--forward-to', to)
    await postJson(`${first.url}?token=a%2Fb`, body)
    await first.printed(1)
    const second = await listenAndSave('--forward-to', `${to}?token=own`)
    await postJson(`${second.url}?token=other`, body)
    await second.printed(1)
    expect(arrived.map(({ url }) => url)).toEqual(['/webhooks/media?token=a%2Fb', '/webhooks/media?token=own'])
  })

  test('sends the user and password of the URL', async () => {
    const { url: to, arrived } = await server()
    const { url, printed } = await listenAndSave('--forward-to', to.replace('//', '//user:pass@'))
    await postJson(url, body, { authorization: 'Bearer from-the-sender' })
    await printed(1)
    expect(arrived[0]?.headers['authorization']).toBe(`Basic ${Buffer.from('user:pass').toString('base64')}`)
  })

  test('prints no secret that the server repeats', async () => {
    const { url: to } = await server(404, ({ url, headers }) => `${url} ${headers['x-signature']}`)
    const { program, url, printed } = await listenAndSave('--forward-to', `${to}?key=s3cret`)
    await postJson(url, body, { 'x-signature': 'sha256=9f86d081884c7d65' })
    const [{ forwarded }] = await printed(1)
    expect(forwarded.answer).toBe('/webhooks/media?key=… …')
    expect(program.output()).not.toMatch(/s3cret|9f86d081884c7d65/)
  })

  test('answers the sender itself, and prints that nothing listens and how to send it again', async () => {
    const port = await freePort()
    const save = await temporaryFolder()
    const to = `http://127.0.0.1:${port}/hook`
    const program = start(['listen', '--port', '0', '--forward-to', to, '--save', save])
    const [url = ''] = /http\S+\d/.exec(await program.line(/^Listening/)) ?? []
    expect((await postJson(url, body)).status).toBe(200)
    const again = await program.line(/^ {2}again/)
    expect(program.output()).toMatch(/\n {2}forwarded {2}- {2}\d+\.\d ms {2}ECONNREFUSED \(is the server running, /)
    const [file = ''] = await readdir(save)
    expect(again).toBe(`  again      npx media-webhooks resend ${save}/${file} --to ${to}`)
  })

  test('gives the server 3 s, as the service does', { timeout: 20_000 }, async () => {
    const to = await serveWebhook(() => {})
    const { url, printed } = await listenAndSave('--forward-to', to)
    await postJson(url, body)
    const [{ forwarded, file }] = await printed(1)
    expect(forwarded.failure).toEqual({ reason: 'timeout', message: 'no answer within 3000 ms' })
    expect(await readFile(file)).toBeDefined()
  })

  test('keeps a delivery that is being forwarded when it is interrupted', async () => {
    let arrive = () => {}
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve
    })
    const to = await serveWebhook(() => arrive())
    const { program, url, printed } = await listenAndSave('--forward-to', to)
    await postJson(url, body)
    await arrived
    program.interrupt()
    expect(await program.code).toBe(0)
    const [{ forwarded, file }] = await printed(1)
    expect(forwarded.failure.message).toBe('interrupted')
    expect(await readFile(file)).toBeDefined()
  })

  test('does not forward a delivery that comes back', async () => {
    let back = ''
    const to = await serveWebhook(async (incoming, response) => {
      const { host, ...headers } = incoming.headers as Record<string, string>
      const content = await buffer(incoming)
      const sent = request(back, { method: 'POST', headers }, (answer) =>
        response.writeHead(answer.statusCode ?? 0).end(),
      )
      sent.end(content)
    })
    const { url, printed } = await listenAndSave('--forward-to', to)
    back = url
    await postJson(url, body)
    const failures = (await printed(2)).map(({ forwarded }) => forwarded.failure?.message)
    expect(failures.toSorted()).toEqual(['not forwarded: --forward-to leads back to this command', undefined])
  })

  test('forwards a delivery that it cannot keep, and says that it is not kept', async () => {
    const { url: to, arrived } = await server()
    const save = `${await temporaryFolder()}/removed`
    const { program, url, printed } = await listen('--save', save, '--forward-to', to)
    await rm(save, { recursive: true })
    await postJson(url, body)
    const [{ file, forwarded }] = await printed(1)
    expect({ file, status: forwarded.status, arrived: arrived.length }).toEqual({ status: 200, arrived: 1 })
    expect(program.errors()).toMatch(/^could not save a delivery: ENOENT/)
  })

  test('makes a temporary folder that only its user can read', async () => {
    const { url: to } = await server()
    const { url, folder, printed } = await listen('--forward-to', to)
    await postJson(url, body)
    const [{ file }] = await printed(1)
    expect(file.startsWith(`${folder}/`)).toBe(true)
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  test.each([
    ['localhost:3000', '--forward-to takes an http or https URL, such as http://127.0.0.1:3000/webhooks/media'],
    ['http://localhost:4020/hook', '--forward-to points at this command itself'],
    ['http://127.1:4020', '--forward-to points at this command itself'],
  ])('rejects %s, and says why', async (to, message) => {
    const { code, errors } = await finish(['listen', '--forward-to', to])
    expect({ code, errors }).toEqual({ code: 2, errors: expect.stringContaining(message) })
  })
})

describe('listen --save', () => {
  test('keeps deliveries without forwarding them', async () => {
    const { url, printed, save } = await listenAndSave()
    await postJson(`${url}?token=abc`, body)
    const [{ file, forwarded }] = await printed(1)
    expect(forwarded).toBeUndefined()
    expect(file).toMatch(/\/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-1\.http$/)
    expect(file.startsWith(save)).toBe(true)
    const kept = await readFile(file)
    expect(kept.toString()).toMatch(/^POST \/hook\?token=abc HTTP\/1\.1\r\n/)
    expect(kept.subarray(-body.length).equals(body)).toBe(true)
  })

  test('says that a file is not a folder', async () => {
    const file = `${await temporaryFolder()}/file`
    await writeFile(file, '')
    const { code, errors } = await finish(['listen', '--port', '0', '--save', file])
    expect({ code, errors }).toEqual({
      code: 1,
      errors: `media-webhooks: cannot create the folder --save ${file}: EEXIST\n`,
    })
  })
})

describe('resend', () => {
  /** Keeps deliveries, and returns their files. */
  async function kept(count: number): Promise<string[]> {
    const { url, printed } = await listenAndSave()
    for (let index = 0; index < count; index++) {
      await postJson(`${url}?n=${index}`, body, { 'x-signature': 'sha256=abc' })
      await printed(index + 1)
    }
    return (await printed(count)).map(({ file }) => file)
  }

  test('sends kept deliveries with the same bytes and headers, in the order of the files', async () => {
    const { url: to, arrived } = await server()
    const files = await kept(2)
    const { code, output } = await finish(['resend', ...files, '--to', to, '--json'])
    expect(code).toBe(0)
    expect(
      output
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject(files.map((file) => ({ file, status: 200, answer: 'answer' })))
    expect(arrived.map(({ url }) => url)).toEqual(['/webhooks/media?n=0', '/webhooks/media?n=1'])
    for (const { headers, body: bytes } of arrived) {
      expect(bytes.equals(body)).toBe(true)
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-signature': 'sha256=abc' })
      expect(headers['via']).toBeUndefined()
    }
  })

  test('exits with 1 if a delivery is not acknowledged, and prints the answer', async () => {
    const { url: to } = await server(503)
    const [file = ''] = await kept(1)
    const { code, output } = await finish(['resend', file, '--to', to])
    expect(code).toBe(1)
    expect(output).toMatch(/\.http {2}503 {2}\d+\.\d ms {2}answered 503 {2}answer\n$/)
  })

  test('reads a file that an editor has changed', async () => {
    const { url: to, arrived } = await server()
    const file = `${await temporaryFolder()}/edited.http`
    await writeFile(file, 'POST /hook HTTP/1.1\ncontent-type:application/json\ncontent-length: 5\n\n{"a": 1}\n')
    expect((await finish(['resend', file, '--to', to])).code).toBe(0)
    expect(arrived[0]?.body.toString()).toBe('{"a": 1}\n')
    expect(arrived[0]?.headers['content-type']).toBe('application/json')
  })

  test.each([
    ['text', 'is not a delivery saved by listen or dev'],
    ['POST /hook HTTP/1.1\r\n\r\n\xff', 'is not a delivery saved by listen or dev'],
    [undefined, 'cannot be read: ENOENT'],
  ])('says what is wrong with a file with %j, and sends nothing', async (content, message) => {
    const { url: to, arrived } = await server()
    const [good = ''] = await kept(1)
    const file = `${await temporaryFolder()}/wrong.http`
    if (content !== undefined) await writeFile(file, content, 'latin1')
    const { code, errors } = await finish(['resend', good, file, '--to', to])
    expect({ code, errors }).toEqual({ code: 1, errors: `media-webhooks: ${file} ${message}\n` })
    expect(arrived).toEqual([])
  })
})
