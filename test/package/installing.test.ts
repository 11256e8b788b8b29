import { execFile } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { startProgram } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { installWith, managers } from './managers.ts'
import { findRegistry } from './registry.ts'

const run = promisify(execFile)
const registry = findRegistry()

describe.skipIf(registry === undefined)('in an empty folder', () => {
  test.each(managers)('$name installs all that `media-webhooks emulate` needs', async (manager) => {
    const { cwd } = await installWith(manager, registry as string, [inject('tarball')])

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
