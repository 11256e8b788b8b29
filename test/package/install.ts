import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of a user who has installed the packed package. It also holds a copy of the examples. */
    userFolder: string
    /** The path of the packed package. */
    tarball: string
    /** The files that `npm pack` put into the package. */
    packedFiles: readonly string[]
  }
}

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))

/** Packages that a user of the adapters and inboxes has also installed. */
const besides = [
  'express',
  'fastify',
  'koa',
  '@koa/router',
  'hono',
  '@hono/node-server',
  'bullmq',
  'ioredis',
  'libsql',
  '@upstash/redis',
  '@aws-sdk/client-sqs',
  '@cloudflare/workers-types',
  'pg',
  '@types/pg',
  '@bull-board/api',
  '@bull-board/express',
  '@opentelemetry/api',
  '@opentelemetry/sdk-node',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/exporter-metrics-otlp-http',
  '@types/node',
  '@types/express',
  '@types/koa',
]

/** Builds and packs the package, and installs it as a user would. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await run('npm', ['run', 'build'], { cwd: root })
  const userFolder = await realpath(await mkdtemp(join(tmpdir(), 'media-webhooks-')))
  const packed = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', userFolder], {
    cwd: root,
  })
  const [{ filename, files }] = JSON.parse(packed.stdout)

  await writeFile(join(userFolder, 'package.json'), '{ "name": "user", "private": true, "type": "module" }')
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
  await run('npm', ['install', ...options, `./${filename}`], { cwd: userFolder })
  for (const name of besides) await link(name, userFolder)
  await cp(join(root, 'examples'), join(userFolder, 'examples'), { recursive: true })

  project.provide('userFolder', userFolder)
  project.provide('tarball', join(userFolder, filename))
  project.provide(
    'packedFiles',
    files.map(({ path }: { path: string }) => path),
  )
  return () => rm(userFolder, { recursive: true })
}

async function link(name: string, userFolder: string): Promise<void> {
  const link = join(userFolder, 'node_modules', name)
  await mkdir(dirname(link), { recursive: true })
  await symlink(join(root, 'node_modules', name), link, 'dir')
}
