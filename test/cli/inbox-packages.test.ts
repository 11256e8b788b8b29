import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const dataUrl = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`

/** Makes Node search a folder without the packages of the inboxes. */
const hooks = dataUrl(`
  export const resolve = (name, context, next) =>
    next(name, /^(pg|bullmq|ioredis)$/.test(name) ? { ...context, parentURL: 'file:///nowhere/app.js' } : context)`)
const uninstalled = dataUrl(`import { register } from 'node:module'; register(${JSON.stringify(hooks)})`)

function run(...args: string[]) {
  const node = ['--import', 'tsx', '--import', uninstalled, 'src/cli/main.ts', 'inbox', ...args]
  // Newer versions of Node warn of register().
  const env = { ...process.env, NODE_NO_WARNINGS: '1' }
  return promisify(execFile)(process.execPath, node, { cwd: new URL('../../', import.meta.url), env })
}

test.each([
  ['postgres://app:password-7@127.0.0.1/app', /^media-webhooks: the package pg is not installed: npm install pg\n$/],
  ['redis://:password-7@127.0.0.1', /^media-webhooks: the package \w+ is not installed: npm install bullmq ioredis\n$/],
])('says how to install the packages that %s needs', async (target, stderr) => {
  await expect(run(target, 'stats')).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(stderr) })
})

test('prints the SQL of the tables without them', async () => {
  expect((await run('postgres://', 'migrate', '--print')).stdout).toMatch(/CREATE TABLE .*"media_webhooks"\.event \(/)
})
