import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('only the hash of a secret stays in memory after the secret was shown', async () => {
  const program = fileURLToPath(new URL('./secrets-child.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', program])
  expect(JSON.parse(stdout)).toEqual({
    created: 20,
    stillAuthenticating: 1,
    inMemory: ['one that was kept on purpose'],
  })
})
