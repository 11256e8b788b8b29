import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('of a secret nothing but its hash stays in memory once it was shown', async () => {
  const program = fileURLToPath(new URL('./secrets-child.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', program])
  expect(JSON.parse(stdout)).toEqual({
    created: 20,
    stillAuthenticating: 1,
    inMemory: ['one that was kept on purpose'],
  })
}, 30_000)
