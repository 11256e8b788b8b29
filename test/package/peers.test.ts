import { execFile } from 'node:child_process'
import { cp, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { installedVersion, peers } from '../support/peers.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { findRedis } from '../support/redis/find-redis.ts'
import { RedisServer } from '../support/redis/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { installWith, managers } from './managers.ts'
import { findRegistry } from './registry.ts'

const run = promisify(execFile)
const fixtures = fileURLToPath(new URL('./fixtures/peers/', import.meta.url))
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')

const sets = {
  oldest: {
    // An application can have an older zod than this package, for its own schemas.
    packages: [...peers.map(({ name, oldest }) => `${name}@${oldest}`), 'zod@4.0.0'],
    types: ['@types/express@4.17.21', '@types/koa@2.13.4', '@types/pg@8.11.0', '@types/node@20.19.43'],
  },
  newest: {
    packages: [...peers.map(({ name, newest }) => `${name}@${newest}`), `zod@${installedVersion('zod')}`],
    types: ['@types/express', '@types/koa', '@types/pg', '@types/node'].map(
      (name) => `${name}@${installedVersion(name)}`,
    ),
  },
}

test('the newest versions that are tested are of the newest major that each range takes', () => {
  const majors = peers.map(({ name, newest }) => [name, newest.split('.')[0]])
  expect(majors).toEqual(peers.map(({ name, range }) => [name, /\^(\d+)[\d.]*$/.exec(range)?.[1]]))
})

/** What the compiler says of our declarations, and of a program that uses them. Those of others may have faults of their own. */
async function faultsOfTypes(cwd: string, moduleResolution: 'nodenext' | 'bundler'): Promise<string[]> {
  const module = moduleResolution === 'bundler' ? 'esnext' : moduleResolution
  const checked = { strict: true, skipLibCheck: false, noEmit: true, target: 'es2023', types: ['node'] }
  const config = { compilerOptions: { ...checked, module, moduleResolution }, files: ['types.ts'] }
  await writeFile(join(cwd, `${module}.json`), JSON.stringify(config))
  const { stdout } = await run(process.execPath, [tsc, '-p', `${module}.json`], { cwd }).catch((error) => error)
  return stdout.split('\n').filter((line: string) => /^(types\.ts|node_modules\/media-webhooks\/)/.test(line))
}

const registry = findRegistry()
const canRun = [registry !== undefined, findRedis(), findPostgres()].every(Boolean)

// Only Workers can load it.
const isForNode = (entry: string) => entry !== './cloudflare' && entry !== './package.json'
const entries = Object.keys(manifest.exports).filter(isForNode)

/** What package managers print of a peer in a version that is not supported, or that is missing. */
const conflict = /(unmet|missing|incorrect) peer|ERESOLVE/i

describe.skipIf(registry === undefined).each(managers)('$name', (manager) => {
  const install = (packages: readonly string[]) =>
    installWith(manager, registry as string, [inject('tarball'), ...packages])

  test.each(Object.entries(sets))('finds no conflict with the %s version of each, and all load', async (_, set) => {
    const { cwd, printed } = await install(set.packages)
    expect(printed).not.toMatch(conflict)
    await cp(join(fixtures, 'load.js'), join(cwd, 'load.js'))
    const names = entries.map((entry) => entry.replace('.', manifest.name))
    const { stdout } = await run(process.execPath, ['load.js', ...names], { cwd })
    expect(Number(stdout)).toBe(names.length)
  })

  // Yarn 1 says nothing of optional peers.
  if (manager.name !== 'Yarn 1')
    test('finds a conflict with a version that is too old', async () => {
      const printed = await install(['pg@8.10.0']).then(
        ({ printed }) => printed,
        ({ stderr }) => stderr,
      )
      expect(printed).toMatch(conflict)
    })
})

test.skipIf(!canRun).each(Object.entries(sets))(
  'npm installs the %s version of each optional peer beside it, its types fit, and its events reach a handler once',
  async (_, { packages, types }) => {
    const cwd = await temporaryFolder()
    await writeFile(join(cwd, 'package.json'), '{ "name": "user", "private": true, "type": "module" }')
    await cp(fixtures, cwd, { recursive: true })
    const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
    await run('npm', ['install', ...options, inject('tarball'), ...packages, ...types], { cwd })

    const resolutions = ['nodenext', 'bundler'] as const
    expect(await Promise.all(resolutions.map((each) => faultsOfTypes(cwd, each)))).toEqual([[], []])

    const [redis, postgres] = await Promise.all([RedisServer.start(), PostgresServer.start()])
    onTestFinished(async () => void (await Promise.all([redis.remove(), postgres.remove()])))
    const env = { ...process.env, REDIS: redis.url, POSTGRES: postgres.url, FOLDER: cwd }
    const { stdout } = await run(process.execPath, ['use.js'], { cwd, env, timeout: 120_000 })
    expect(JSON.parse(stdout)).toEqual(
      Object.fromEntries([...peers.map(({ name }) => name), 'zod'].map((name) => [name, '200 200 a-film'])),
    )
  },
)
