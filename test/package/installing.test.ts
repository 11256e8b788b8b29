import { execFile } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { startProgram } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { findRegistry } from './registry.ts'

const run = promisify(execFile)
const registry = findRegistry()

/** The command by which each package manager installs a tarball. */
const managers = [
  { name: 'npm', add: ['npm', 'install', '--no-audit', '--no-fund'] },
  { name: 'pnpm', add: ['npx', '-y', 'pnpm@10', 'add'] },
  { name: 'Yarn 1', add: ['npx', '-y', 'yarn@1.22', 'add'] },
]

describe.skipIf(registry === undefined)('in an empty folder', () => {
  test.each(managers)('$name installs all that `media-webhooks emulate` needs', async ({ add }) => {
    const cwd = await temporaryFolder()
    await writeFile(join(cwd, 'package.json'), '{ "name": "empty", "version": "1.0.0", "private": true }')
    // Yarn 1 asks a registry of its own unless told otherwise.
    const env = { npm_config_registry: registry as string, npm_config_update_notifier: 'false' }
    const [installer = '', ...args] = add
    await run(installer, [...args, inject('tarball')], { cwd, env: { ...process.env, ...env }, timeout: 120_000 })

    // npx, and the like of the others, run this file; a signal sent to them may not reach it.
    const bin = join(cwd, 'node_modules/.bin/media-webhooks')
    const emulator = await startProgram(bin, ['emulate', '--port', '0', '--json'], { cwd }, /"url":"([^"]+)"/)
    onTestFinished(async () => void (await emulator.stop()))
    const page = await fetch(emulator.captured)
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('/page/style.css')])
  })

  test('a user who only receives gets zod and lru-cache, nothing else', async () => {
    const cwd = await temporaryFolder()
    await writeFile(join(cwd, 'package.json'), '{ "name": "empty", "version": "1.0.0", "private": true }')
    await run('npm', ['install', '--no-audit', '--no-fund', inject('tarball')], { cwd, timeout: 120_000 })
    const installed = (await readdir(join(cwd, 'node_modules'))).filter((name) => !name.startsWith('.'))
    expect(installed.sort()).toEqual(['lru-cache', 'media-webhooks', 'zod'])
  })
})
