import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { bundles } from './bundle-programs.ts'
import { findRegistry } from './registry.ts'

const run = promisify(execFile)
const modules = fileURLToPath(new URL('../../node_modules/', import.meta.url))
const packages = ['webpack@5', 'rollup@4', '@rollup/plugin-node-resolve@16', 'vite@8']
const programs = Object.entries(bundles)

/** Packages that nobody bundles. libsql stays outside by itself. */
const external = new Set(programs.flatMap(([, { external = [] }]) => external.filter((name) => name !== 'libsql')))

const nameOf = (entry: string) => entry.replace(/^\.\/?/, '').replaceAll('/', '-') || 'default'

let bundlers: string

beforeAll(async () => {
  if (findRegistry() === undefined) return
  bundlers = await mkdtemp(join(tmpdir(), 'media-webhooks-'))
  await cp(fileURLToPath(new URL('fixtures/bundlers/', import.meta.url)), bundlers, { recursive: true })
  await writeFile(join(bundlers, 'package.json'), '{ "name": "bundlers", "private": true, "type": "module" }')
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
  await run('npm', ['install', ...options, ...packages], { cwd: bundlers, timeout: 180_000 })
})
afterAll(() => bundlers && rm(bundlers, { recursive: true }))

/** Bundles the programs of all entries in one build. */
async function bundleAll(bundler: string): Promise<{ folder: string; warnings: string[] }> {
  const folder = await temporaryFolder()
  await mkdir(join(folder, 'programs'))
  await symlink(join(inject('userFolder'), 'node_modules'), join(folder, 'node_modules'), 'dir')
  for (const [entry, { program }] of programs) await writeFile(join(folder, 'programs', `${nameOf(entry)}.js`), program)
  await run(process.execPath, ['bundle.js', bundler, folder, ...external], { cwd: bundlers })
  const warnings: string[] = JSON.parse(await readFile(join(folder, 'warnings.json'), 'utf8'))
  return { folder: join(folder, 'bundles'), warnings: warnings.filter(isOfThePackage) }
}

/** Rollup also warns of the import cycles in Hono's JSX, which the package has a copy of, and of zod's comments and cycles. */
function isOfThePackage(warning: string): boolean {
  const thirdParty = /(node_modules\/zod\/|node_modules\/media-webhooks\/dist\/third-party\/)/
  return !thirdParty.test(warning) || /media-webhooks\/dist\/(?!third-party\/)/.test(warning)
}

/** Copies bundles to a folder without any module but those that stay outside, and runs each. Returns what they print. */
async function runAll(folder: string): Promise<Record<string, string>> {
  const cwd = await temporaryFolder()
  await cp(folder, cwd, { recursive: true })
  await mkdir(join(cwd, 'node_modules'))
  for (const name of [...external, 'libsql']) await symlink(join(modules, name), join(cwd, 'node_modules', name), 'dir')
  const files = await readdir(cwd)
  const printed: Record<string, string> = {}
  for (const [entry] of programs) {
    const file = files.find((name) => name.replace(/\.[cm]?js$/, '') === nameOf(entry)) as string
    const { stdout } = await run(process.execPath, ['--no-warnings', file], { cwd, timeout: 120_000 })
    printed[entry] = stdout.trim()
  }
  return printed
}

const expected = Object.fromEntries(programs.map(([entry, { prints }]) => [entry, prints]))

describe.skipIf(findRegistry() === undefined)('all entries', () => {
  test.each(['webpack', 'rollup', 'Vite SSR'])(
    'bundled by %s without a warning, run away from node_modules',
    async (bundler) => {
      const { folder, warnings } = await bundleAll(bundler)
      expect([warnings, await runAll(folder)]).toEqual([[], expected])
    },
  )
})
