import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** The most files that a reader has to open to follow a delivery from the adapter to the handler. */
const most = 19

test(`a delivery passes through at most ${most} files between Express and the handler`, async () => {
  const script = fileURLToPath(new URL('./files-on-the-path.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', script])
  const files: string[] = JSON.parse(stdout)
  // Both ends, so that an empty measurement does not pass.
  expect(files).toContainEqual(expect.stringMatching(/^adapters\//))
  expect(files).toContainEqual(expect.stringMatching(/^src\/receiver\//))
  expect(files).toContainEqual(expect.stringMatching(/^src\/handlers\//))
  expect(files.length, files.join('\n')).toBeLessThanOrEqual(most)
})
