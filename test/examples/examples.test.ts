import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { finish } from '../cli/program.ts'
import { startWorkerd } from '../runtimes/start-workerd.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { postJson } from '../support/post-json.ts'
import { type Program, startProgram } from '../support/program.ts'

const require = createRequire(import.meta.url)
const secret = 'a-secret-of-the-test'
const body = '{"type":"encoding.finished","media_id":"a-film","qualities":"360p,720p","status":"done"}'

const folderOf = (example: string) => join(inject('userFolder'), 'examples', example)

/** Runs what `npm start` of an example runs. */
function startServer(example: string, more: Readonly<Record<string, string>> = {}): Promise<Program> {
  const env = { PORT: '0', WEBHOOK_TOKEN: secret, WEBHOOK_SECRET: secret, ...more }
  const args = ['--import', require.resolve('tsx'), 'server.ts']
  return startProgram(process.execPath, args, { cwd: folderOf(example), env }, /^listening on (\d+)$/)
}

const withToken = (token: string) => ({ query: `?token=${token}`, headers: {} })
const withSignature = (key: string) => ({
  query: '',
  headers: { 'x-signature': `sha256=${createHmac('sha256', key).update(body).digest('hex')}` },
})

const workerd = findRuntime('workerd')

const examples = [
  { name: 'express', start: () => startServer('express'), sign: withToken, first: 'accepted' },
  { name: 'fastify', start: () => startServer('fastify'), sign: withToken, first: 'accepted' },
  { name: 'koa', start: () => startServer('koa'), sign: withToken, first: 'accepted' },
  { name: 'hono-node', start: () => startServer('hono-node'), sign: withSignature, first: 'accepted' },
  {
    name: 'workers',
    start: () => startWorkerd(workerd as string, folderOf('workers'), 'worker.ts', { WEBHOOK_TOKEN: secret }),
    sign: withToken,
    first: 'handled',
  },
].filter(({ name }) => name !== 'workers' || workerd !== undefined)

describe.each(examples)('the example for $name', ({ start, sign, first }) => {
  let program: Program
  beforeAll(async () => {
    program = await start()
  })
  afterAll(() => program?.stop())

  async function deliver(key: string) {
    const { query, headers } = sign(key)
    const url = `http://127.0.0.1:${program.captured}/webhooks/media${query}`
    const response = await postJson(url, body, headers)
    return [response.status, ((await response.json()) as { status: string }).status]
  }

  test('accepts a delivery, knows its duplicate, rejects a forged one and handles the event once', async () => {
    expect(await deliver(secret)).toEqual([200, first])
    expect(await deliver(secret)).toEqual([200, 'duplicate'])
    expect(await deliver('a-guess')).toEqual([401, 'error'])
    await expect.poll(() => program.output()).toContain('publish a-film in 360p, 720p')
    expect(program.output().match(/publish/g)).toHaveLength(1)
  })
})

test.each(['express', 'fastify', 'koa', 'hono-node'])(
  'the example for %s closes once it is asked to end',
  async (name) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const program = await startServer(name)
      expect(await program.stop(signal)).toBe(0)
      expect(program.output()).toContain(`media-webhooks: closed {"signal":"${signal}"`)
    }
  },
)

test('the example for express notices an event that never comes, and no other', async () => {
  const program = await startServer('express', { ENCODED_WITHIN: '500 ms' })
  onTestFinished(async () => void (await program.stop()))
  const send = (type: string, media_id: string) =>
    postJson(`http://127.0.0.1:${program.captured}/webhooks/media?token=${secret}`, JSON.stringify({ type, media_id }))
  for (const media of ['a-film', 'lost']) expect((await send('file.received', media)).status).toBe(200)
  expect((await send('encoding.finished', 'a-film')).status).toBe(200)
  await expect.poll(() => program.output()).toContain('ask the service about lost')
  expect(program.output()).not.toContain('about a-film')
})

describe('the example for mux', () => {
  async function start(more: Readonly<Record<string, string>> = {}) {
    const program = await startServer('mux', { MUX_SECRET: secret, ...more })
    onTestFinished(async () => void (await program.stop()))
    const trigger = (file: string, key: string) => {
      const signature = ['--sign', 'timestamped-signature', '--header', 'mux-signature', '--secret', key]
      const url = `http://127.0.0.1:${program.captured}/webhooks/mux`
      return finish(['trigger', '--body', join(folderOf('mux'), file), '--to', url, ...signature])
    }
    return { program, trigger }
  }

  test('accepts the event of its README, knows its duplicate, and rejects a forged one', async () => {
    const { program, trigger } = await start()
    expect((await trigger('event.json', secret)).output).toContain('{"status":"accepted"}')
    expect((await trigger('event.json', secret)).output).toContain('{"status":"duplicate"}')
    expect((await trigger('event.json', 'a-guess')).output).toContain('401')
    await expect.poll(() => program.output()).toContain('publish an-upload: 61.5 s, asset an-asset')
    expect(program.output().match(/publish/g)).toHaveLength(1)
    expect(await program.stop('SIGTERM')).toBe(0)
  })

  test('notices an upload that was not encoded', async () => {
    const { program, trigger } = await start({ ENCODED_WITHIN: '500 ms' })
    expect((await trigger('upload.json', secret)).output).toContain('{"status":"accepted"}')
    await expect.poll(() => program.output()).toContain('ask Mux about a-lost-upload')
  })
})

const sources = [
  ['express', 'server.ts'],
  ['fastify', 'server.ts'],
  ['koa', 'server.ts'],
  ['hono-node', 'server.ts'],
  ['mux', 'server.ts'],
  ['mux', 'mux.ts'],
  ['bullmq', 'server.ts'],
  ['workers', 'worker.ts'],
  ['workers-durable', 'worker.ts'],
  ['aws-lambda-sqs', 'functions.ts'],
  ['cloudflare-queues', 'worker.ts'],
] as const

test('the examples type-check', async () => {
  const options = { module: 'nodenext', target: 'es2023', strict: true, skipLibCheck: true }
  const compilerOptions = { ...options, noEmit: true, allowImportingTsExtensions: true }
  const files = sources.map((path) => path.join('/'))
  await writeFile(
    folderOf('tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, types: ['node'] }, files }),
  )
  const args = [require.resolve('typescript/bin/tsc'), '-p', folderOf('.')]
  execFileSync(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
})

test.each(sources)('the package.json of the example for %s names what %s imports', (example, source) => {
  const imports = readFileSync(join(folderOf(example), source), 'utf8').matchAll(/from '((?:@[^/']+\/)?[^./'][^/']*)/g)
  const { dependencies } = JSON.parse(readFileSync(join(folderOf(example), 'package.json'), 'utf8'))
  expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(Array.from(imports, ([, each]) => each)))
})
