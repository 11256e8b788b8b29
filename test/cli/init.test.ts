import { execFile, spawn } from 'node:child_process'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { frameworks, inboxes, type ServerChoices, serverFile } from '../../src/cli/commands/init/server-file.ts'
import { packagesOf } from '../../src/cli/commands/init.ts'
import { blocksOf, pageOf } from '../docs/pages.ts'
import { freePort } from '../support/free-port.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { faultsOf } from './compiled.ts'
import { finish } from './program.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const tsx = ['--import', import.meta.resolve('tsx')]
const env = { PATH: process.env['PATH'] ?? '', TSX_TSCONFIG_PATH: `${root}docs/tsconfig.json` }

const names = <Name extends string>(of: Readonly<Record<Name, unknown>>) => Object.keys(of) as Name[]
const all: readonly ServerChoices[] = names(frameworks).flatMap((framework) =>
  names(inboxes).flatMap((inbox) =>
    (['media-service', 'own'] as const).map((sender) => ({ framework, inbox, sender })),
  ),
)

/** An empty folder that finds the packages of this one. */
async function emptyFolder() {
  const folder = await temporaryFolder()
  await symlink(`${root}node_modules`, join(folder, 'node_modules'))
  const init = (...args: string[]) =>
    promisify(execFile)(process.execPath, [...tsx, `${root}src/cli/main.ts`, 'init', ...args], { cwd: folder, env })
  return { folder, init }
}

test('every server that init writes type-checks, as TypeScript and as JavaScript', () => {
  const sources = new Map(
    all.flatMap((choices) =>
      ['mts', 'mjs'].map((end) => [`${Object.values(choices).join('-')}.${end}`, serverFile(choices)] as const),
    ),
  )
  const faults = faultsOf(sources, { noEmit: true, allowJs: true, checkJs: true })
  expect(faults).toEqual([])
  expect(sources.size).toBe(80)
})

test('init names every package that the server imports', () => {
  for (const choices of all) {
    const imported = [...serverFile(choices).matchAll(/ from '((?:@[^/']+\/)?[^/']+)/g)].map(([, name = '']) => name)
    const { packages } = packagesOf(choices, false)
    for (const name of imported.filter((each) => each !== 'media-webhooks' && !each.startsWith('node:')))
      expect(packages).toContain(name)
    for (const name of [...packages, ...packagesOf(choices, true).development])
      expect(Object.keys({ ...manifest.devDependencies, ...manifest.dependencies })).toContain(name)
  }
})

/** Writes a server, starts it with the printed command, and sends it an event with the printed command. */
async function follow(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const { folder, init } = await emptyFolder()
  const { stdout } = await init(...args, '--json')
  const { file, start, send } = JSON.parse(stdout)
  const PORT = `${await freePort()}`
  const command = start
    .replace(/ (npx tsx|node) /, ` ${process.execPath} ${tsx.join(' ')} `)
    .replace(/ \w+_URL=\S+/, '')
  const server = spawn('sh', ['-c', command.replace(/^(\S+ )/, '$1exec ')], {
    cwd: folder,
    env: { ...env, ...variables, PORT },
  })
  const closed = new Promise((resolve) => server.once('close', resolve))
  onTestFinished(async () => {
    server.kill('SIGKILL')
    await closed
  })
  let output = ''
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (text) => (output += text))
  await expect.poll(() => output, { interval: 50 }).toContain(`listening on ${PORT}`)
  const program = `${process.execPath} ${tsx.join(' ')} ${root}src/cli/main.ts`
  const sent = await promisify(execFile)(
    'sh',
    ['-c', send.replace('npx media-webhooks', program).replace(':3000', `:${PORT}`)],
    { cwd: folder, env },
  )
  expect(sent.stdout).toMatch(/ 200 /)
  await expect.poll(() => output, { interval: 50 }).toMatch(/^publish \S+(, 12 s| in 360p, 720p)$/m)
  server.kill('SIGTERM')
  await closed
  expect(server.exitCode).toBe(0)
  return { file, output }
}

describe('a server that init wrote handles what the printed command sends', () => {
  test.each([
    [['express']],
    [['hono', '--ts', '--inbox', 'sqlite']],
    [['fastify', '--sender', 'own']],
    [['koa', '--ts', '--inbox', 'sqlite', '--sender', 'own']],
    [['node', '--inbox', 'sqlite']],
  ])('%j', async (args) => {
    const { file } = await follow(args)
    expect(file).toBe(args.includes('--ts') ? 'server.mts' : 'server.mjs')
  })

  test.skipIf(findPostgres() === undefined)('in Postgres', async () => {
    const server = await PostgresServer.start()
    onTestFinished(() => server.remove())
    await follow(['express', '--inbox', 'postgres', '--ts'], { DATABASE_URL: server.url })
  })

  test.skipIf(!findRedis())('in Redis', async () => {
    const server = await RedisServer.start()
    onTestFinished(() => server.remove())
    await follow(['node', '--inbox', 'bullmq'], { REDIS_URL: server.url })
  })
})

test('init overwrites no file', async () => {
  const { folder, init } = await emptyFolder()
  await writeFile(join(folder, 'server.mjs'), 'mine')
  await expect(init('express')).rejects.toMatchObject({
    code: 1,
    stderr:
      'media-webhooks: there is a server.mjs already, and init overwrites no file: move it, or run init elsewhere\n',
  })
  expect(await readFile(join(folder, 'server.mjs'), 'utf8')).toBe('mine')
})

test('init prints what to install, unless package.json has it, how to start the server and how to send it an event', async () => {
  const { folder, init } = await emptyFolder()
  const { stdout } = await init('koa', '--ts', '--inbox', 'postgres')
  expect(stdout).toMatch(/^Wrote server\.mts\.\n\nInstall:\n {2}npm install media-webhooks koa @koa\/router pg\n/)
  expect(stdout).toMatch(/\n {2}npm install --save-dev tsx @types\/node @types\/koa @types\/pg\n\nStart it:\n/)
  expect(stdout).toMatch(
    /\n {2}WEBHOOK_TOKEN=[\da-f]{32} DATABASE_URL=postgres:\/\/localhost\/app npx tsx server\.mts\n/,
  )
  expect(stdout).toMatch(
    /\n {2}npx media-webhooks trigger lifecycle --time-scale 0\.1 --to 'http:\/\/127\.0\.0\.1:3000\//,
  )
  await writeFile(join(folder, 'package.json'), '{"dependencies":{"media-webhooks":"file:../media-webhooks.tgz"}}')
  expect((await init('node')).stdout).toMatch(/^Wrote server\.mjs\.\n\nStart it:\n/)
})

test('an unknown framework is an invalid command line that says which there are', async () => {
  expect(await finish(['init', 'rails'])).toMatchObject({
    code: 2,
    errors: expect.stringContaining('takes one of express, hono, fastify, koa, node'),
  })
})

test('docs/commands.md shows what init writes', () => {
  const shown = blocksOf(pageOf('commands')).find(({ code }) => code.startsWith('// server.mjs\n'))?.code
  expect(shown).toBe(`// server.mjs\n${serverFile({ framework: 'express', inbox: 'sqlite', sender: 'media-service' })}`)
})
