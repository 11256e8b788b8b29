import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { type Client, createClient } from '../../src/service/client/index.ts'
import { createEmulator } from '../../src/service/emulator/index.ts'
import { freePort } from '../support/free-port.ts'
import { startProgram } from '../support/program.ts'
import { serve, serveWebhook } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { finish, start } from './program.ts'

const cwd = fileURLToPath(new URL('../../', import.meta.url))

/** Starts the service, with a client of it, and the user's server, which counts its deliveries. */
async function setUp() {
  const emulator = await createEmulator()
  onTestFinished(() => emulator.close())
  const client = createClient(emulator.credentials, { baseUrl: emulator.url })
  let deliveries = 0
  const to = await serveWebhook((_, response) => {
    deliveries++
    response.end('{"status":"accepted"}')
  })
  const { accessToken } = emulator.credentials
  const env = { MEDIA_WEBHOOKS_BASE_URL: emulator.url, MEDIA_WEBHOOKS_ACCESS_TOKEN: accessToken }
  return { emulator, client, env, to, deliveries: () => deliveries }
}

const webhooksOf = async (client: Client) => (await client.webhook.list()).data.webhooks
const idsOf = async (client: Client) => (await webhooksOf(client)).map(({ id }) => id)

/** Starts `dev` as a process of its own, and waits until it has printed the id of its webhook. */
async function startProcess(args: readonly string[], env: Record<string, string>) {
  const command = ['--import', 'tsx', 'src/cli/main.ts', 'dev', ...args]
  const program = await startProgram(process.execPath, command, { cwd, env }, /^Created the webhook (\S+)/)
  onTestFinished(async () => void (await program.stop()))
  return program
}

/** Starts `dev --json` in this process. */
async function startDev(args: readonly string[], env: Record<string, string>) {
  const program = start(['dev', '--port', '0', '--json', ...args], env)
  return { program, ...JSON.parse(await program.line(/^{"url"/)) }
}

test.each(['SIGINT', 'SIGTERM'] as const)(
  'dev forwards what the service sends, keeps it for resend, and deletes its webhook on %s',
  async (signal) => {
    const { client, env, to, deliveries } = await setUp()
    const save = await temporaryFolder()
    const { captured: id, output, stop } = await startProcess(['--port', '0', '--forward-to', to, '--save', save], env)
    expect(await idsOf(client)).toEqual([id])
    await client.webhook.check(id)
    await expect.poll(output).toMatch(/\n {2}forwarded {2}200 .*\n {2}saved in {3}\S+-1\.http\n/)
    expect(deliveries()).toBe(1)

    expect(await stop(signal)).toBe(0)
    expect(await webhooksOf(client)).toEqual([])
    expect(output()).toContain(`Deleting the webhook ${id}. Press Ctrl-C again to leave it at the service.\nDeleted.`)
    const [file] = await readdir(save)
    expect(await finish(['resend', `${save}/${file}`, '--to', to])).toMatchObject({ code: 0 })
    expect(deliveries()).toBe(2)
  },
)

/** The service behind a proxy. `deletes` is called for each deletion, and may keep it from being answered. */
const behindProxy = (emulator: { readonly url: string }, deletes: () => boolean) =>
  serve(async (request, response) => {
    if (request.method === 'DELETE' && !deletes()) return
    const chunks = await request.toArray()
    const { authorization = '', 'content-type': type = '' } = request.headers
    const init = { method: request.method as string, headers: { authorization, 'content-type': type } }
    const body = request.method === 'POST' ? { body: Buffer.concat(chunks) } : {}
    const answer = await fetch(`${emulator.url}${request.url}`, { ...init, ...body })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })

test('dev deletes its webhook although npx passes on the Ctrl-C that the terminal also sends', async () => {
  const { emulator, client, env, to } = await setUp()
  let pressedAgain: Promise<number | null> | undefined
  const proxy = await behindProxy(emulator, () => {
    pressedAgain ??= stop('SIGINT')
    return true
  })
  const proxied = { ...env, MEDIA_WEBHOOKS_BASE_URL: proxy }
  const { stop } = await startProcess(['--port', '0', '--forward-to', to], proxied)
  expect(await stop('SIGINT')).toBe(0)
  expect(await pressedAgain).toBe(0)
  expect(await webhooksOf(client)).toEqual([])
})

test('dev says which webhook it leaves when a second Ctrl-C ends it', async () => {
  const { emulator, client, env, to } = await setUp()
  // The service never answers a deletion.
  const proxy = await behindProxy(emulator, () => false)
  const slow = { ...env, MEDIA_WEBHOOKS_BASE_URL: proxy }
  const { captured: id, output, stop } = await startProcess(['--port', '0', '--forward-to', to], slow)
  const first = stop('SIGINT')
  const last = `Deleting the webhook ${id}. Press Ctrl-C again to leave it at the service.\n`
  await expect.poll(output).toContain(last)
  const presses = setInterval(() => void stop('SIGINT'), 50)
  expect(await first).toBeNull()
  clearInterval(presses)
  expect(output().endsWith(last)).toBe(true)
  expect(await idsOf(client)).toEqual([id])
})

test('dev deletes the webhook of a killed run on its port, and no webhook that it did not create', async () => {
  const { client, env, to } = await setUp()
  const port = String(await freePort())
  const args = ['--port', port, '--forward-to', to]
  const killed = await startProcess(args, env)
  await killed.stop('SIGKILL')
  const others = [
    { url: `http://127.0.0.1:${port}`, name: 'production' },
    { url: 'https://example.com/', name: `media-webhooks dev someone@else:${port}` },
    { url: 'https://example.com/', name: 'my media-webhooks dev' },
  ]
  for (const other of others) await client.webhook.create({ ...other, fileReceived: true })

  const next = await startProcess(args, env)
  expect(next.captured).not.toBe(killed.captured)
  const deleted = `Deleted the webhook ${killed.captured}, left behind by an earlier run.\n`
  await expect.poll(next.output).toContain(deleted)
  expect(await next.stop('SIGINT')).toBe(0)
  expect((await webhooksOf(client)).map(({ name }) => name)).toEqual(others.map(({ name }) => name))
})

test("dev deletes a killed run's webhook with the same URL, and reports one on another port", async () => {
  const { client, env, to } = await setUp()
  const url = 'https://tunnel.example/hook?token=s3cret'
  const { program: first, webhook } = await startDev(['--forward-to', to], env)
  const left = { name: 'media-webhooks dev someone@else:1', url, fileReceived: true }
  const { id } = (await client.webhook.create(left)).data.webhook
  const { program } = await startDev(['--forward-to', to, '--url', url], env)
  expect(program.errors()).toContain(`Deleted the webhook ${id}, left behind by an earlier run.\n`)
  const reported = `The webhook ${webhook.id} belongs to a run on another port, or was left behind.`
  expect(program.errors()).toContain(`${reported} To delete it: npx media-webhooks webhooks delete ${webhook.id}\n`)
  expect(await idsOf(client)).toHaveLength(2)
  for (const each of [first, program]) each.interrupt()
  expect(await Promise.all([first.code, program.code])).toEqual([0, 0])
})

test('dev gives the service the URL of a tunnel and the chosen events, and masks the secret in the URL', async () => {
  const { client, env, to } = await setUp()
  const url = 'https://tunnel.example/hook?token=s3cret'
  const args = ['--forward-to', to, '--url', url, '--events', 'encoding.finished']
  const { program, webhook } = await startDev(args, env)
  const chosen = { url, encodingFinished: true, encodingFailed: false, fileReceived: false }
  expect(await webhooksOf(client)).toMatchObject([{ id: webhook.id, ...chosen }])
  expect(webhook.url).toBe('https://tunnel.example/hook?token=…')
  program.interrupt()
  expect(await program.code).toBe(0)
  expect(program.output() + program.errors()).not.toContain('s3cret')
})

test('dev goes on when the server is down, and prints how to send the delivery again', async () => {
  const { client, env } = await setUp()
  const to = `http://127.0.0.1:${await freePort()}/hook`
  const program = start(['dev', '--port', '0', '--forward-to', to, '--save', await temporaryFolder()], env)
  const [, id = ''] = /^Created the webhook (\S+)/.exec(await program.line(/^Created/)) ?? []
  await client.webhook.check(id)
  expect(await program.line(/^ {2}again/)).toMatch(/media-webhooks resend \S+\.http --to/)
  expect(program.output()).toContain('ECONNREFUSED')
  program.interrupt()
  expect(await program.code).toBe(0)
  expect(await webhooksOf(client)).toEqual([])
})

test('dev with a wrong key says so and creates nothing', async () => {
  const { client, env, to } = await setUp()
  const wrong = { ...env, MEDIA_WEBHOOKS_ACCESS_TOKEN: 'wrong' }
  const { code, errors } = await finish(['dev', '--port', '0', '--forward-to', to], wrong)
  expect({ code, errors }).toEqual({ code: 1, errors: expect.stringMatching(/^media-webhooks: .*401.*\n$/) })
  expect(await webhooksOf(client)).toEqual([])
})

test('dev creates nothing if its port is taken', async () => {
  const { client, env, to } = await setUp()
  const { port } = new URL(await serve(() => {}))
  const { code, errors } = await finish(['dev', '--port', port, '--forward-to', to], env)
  expect({ code, errors }).toEqual({ code: 1, errors: expect.stringContaining(`port ${port} is taken`) })
  expect(await webhooksOf(client)).toEqual([])
})

test('dev needs the URL of a tunnel if the service is on another machine', async () => {
  const args = [
    '--forward-to',
    'http://127.0.0.1:3000/',
    '--base-url',
    'https://api.example.com',
    '--access-token',
    'x',
  ]
  const { code, errors } = await finish(['dev', ...args])
  expect({ code, errors }).toEqual({ code: 2, errors: expect.stringContaining('--url is missing') })
})

test('dev exits with 1 and names the webhook if it cannot be deleted', async () => {
  const { emulator, env, to } = await setUp()
  const { program, webhook } = await startDev(['--forward-to', to], env)
  await emulator.close()
  program.interrupt()
  expect(await program.code).toBe(1)
  expect(program.errors()).toMatch(
    new RegExp(`The webhook ${webhook.id} could not be deleted: .* media-webhooks webhooks delete ${webhook.id}\n$`),
  )
})

test('dev ends without an error if its webhook is deleted already', async () => {
  const { client, env, to } = await setUp()
  const { program, webhook } = await startDev(['--forward-to', to], env)
  await client.webhook.delete(webhook.id)
  program.interrupt()
  expect(await program.code).toBe(0)
})

/** Starts `dev` without `--base-url`, and returns the URL of its emulator. */
async function startEmulated(to: string, ...args: string[]) {
  const program = start(['dev', '--port', '0', '--time-scale', '0.01', '--forward-to', to, ...args])
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(await program.line(/Emulating|^{"url"/)) ?? []
  return { program, url }
}

test('dev without --base-url emulates the service, and prints a line for each delivery of an upload', async () => {
  const { to, deliveries } = await setUp()
  const { program, url } = await startEmulated(`${to}?token=s3cret`)
  expect(await program.line(/^Created/)).toMatch(/^Created the webhook \S+: all events to http:\S+\?token=…$/)
  const upload = await program.line(/^ {2}curl/)
  // The emulator runs in this process.
  await promisify(execFile)('sh', ['-c', upload])
  const lines = await program.lines(/^[\d:.]{12} /, 5)
  expect(lines[0]).toMatch(/ {2}file\.received {6}attempt 1 {2}200 .* {"status":"accepted"}$/)
  expect(deliveries()).toBe(5)
  expect(await (await fetch(url)).text()).toContain('Holiday.mp4')
  program.interrupt()
  expect(await program.code).toBe(0)
  expect(program.output() + program.errors()).not.toMatch(/s3cret|go-resty/)
  await expect(fetch(url)).rejects.toThrow()
})

test('dev --headers also prints the headers of a delivery, and --events chooses the types', async () => {
  const { to } = await setUp()
  const { program, url } = await startEmulated(to, '--headers', '--events', 'encoding.finished')
  await fetch(`${url}/emulator/media`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })
  expect(await program.line(/^ {14}User-Agent/)).toContain('go-resty')
  expect(program.output().match(/attempt 1/g)).toHaveLength(1)
})

test('dev --json prints the webhook of its emulator, and an object for each delivery', async () => {
  const { to } = await setUp()
  const { program, url } = await startEmulated(to, '--json', '--headers')
  await fetch(`${url}/emulator/media`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })
  const [webhook, delivery] = (await program.lines(/^{/, 2)).map((line) => JSON.parse(line))
  expect(webhook).toEqual({ url, webhook: { id: expect.any(String), url: to } })
  expect(delivery).toMatchObject({ type: 'file.received', attempt: 1, status: 200 })
  expect(delivery.headers).toContainEqual(['Content-Type', 'application/json'])
})

test.each([
  [['--url', 'https://tunnel.example'], '--url goes with --base-url'],
  [['--save', 'folder'], '--save goes with --base-url'],
  [['--headers', '--base-url', 'http://127.0.0.1:4010'], '--headers goes without --base-url'],
])('dev rejects %j, which the other way of running it takes', async (args, message) => {
  const { code, errors } = await finish(['dev', '--forward-to', 'http://127.0.0.1:3000/', ...args])
  expect({ code, errors }).toEqual({ code: 2, errors: expect.stringContaining(message) })
})
