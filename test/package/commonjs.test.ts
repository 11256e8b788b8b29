import { execFile, execFileSync } from 'node:child_process'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { findRegistry } from './registry.ts'

const run = promisify(execFile)
const fixtures = fileURLToPath(new URL('./fixtures/', import.meta.url))
const registry = findRegistry()

/** Runs a program of CommonJS in the user's folder, and reads the JSON that it prints. */
function evaluate(program: string): unknown {
  const args = ['--input-type=commonjs', '--eval', program]
  return JSON.parse(execFileSync(process.execPath, args, { cwd: inject('userFolder'), encoding: 'utf8' }))
}

test('require loads CommonJS, and import loads ES modules', () => {
  const loaded = evaluate(`
    const { WebhookError } = require('media-webhooks')
    import('media-webhooks').then((modules) => console.log(JSON.stringify([
      require.resolve('media-webhooks').endsWith('.cjs'),
      modules.WebhookError === WebhookError,
    ])))`)
  expect(loaded).toEqual([true, false])
})

test.each([
  { entry: '', name: 'WebhookError', args: "'malformed', 'a message'" },
  { entry: '/client', name: 'ApiError', args: "'timeout', 'a message', { method: 'GET', path: '/' }" },
])('a $name that one build made is recognised by the other', ({ entry, name, args }) => {
  const recognised = evaluate(`
    const required = require('media-webhooks${entry}').${name}
    import('media-webhooks${entry}').then(({ ${name}: imported }) => {
      class Subclass extends imported {}
      console.log(JSON.stringify({
        ofModules: new imported(${args}) instanceof required,
        ofCommonJs: new required(${args}) instanceof imported,
        ofSubclass: new Subclass(${args}) instanceof required,
        anotherAsSubclass: new required(${args}) instanceof Subclass,
        ownAsSubclass: new Subclass(${args}) instanceof Subclass,
        others: [new Error('another'), { name: '${name}' }, null, undefined, 'text'].some((each) => each instanceof imported),
      }))
    })`)
  expect(recognised).toEqual({
    ofModules: true,
    ofCommonJs: true,
    ofSubclass: true,
    anotherAsSubclass: false,
    ownAsSubclass: true,
    others: false,
  })
})

test.skipIf(registry === undefined)(
  'Jest 30 runs the tests of a CommonJS Express project without configuration, also those that ask for jsdom',
  async () => {
    const cwd = await temporaryFolder()
    await writeFile(join(cwd, 'package.json'), '{ "name": "on-jest", "private": true }')
    await cp(join(fixtures, 'jest'), cwd, { recursive: true })
    const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
    const packages = ['jest@30', 'jest-environment-jsdom@30', 'express@5', 'libsql@0.5', inject('tarball')]
    await run('npm', ['install', ...options, ...packages], { cwd, timeout: 180_000 })
    const { stderr } = await run('npx', ['jest'], { cwd, timeout: 180_000 })
    expect(stderr).toMatch(/Tests: +10 passed, 10 total/)
  },
)
