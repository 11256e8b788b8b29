import { expect, test } from 'vitest'
import { filesBeforeHandler } from '../../support/files-before-handler.ts'
import { freshPath } from './sqlite-tests.ts'

/** Maximum number of files that a reader has to open to follow a delivery from the adapter over a file to the handler. */
const most = 55

test(`a delivery passes through at most ${most} files between Express and the handler`, async () => {
  const files = await filesBeforeHandler(await freshPath())
  expect(files).toContainEqual(expect.stringMatching(/^src\/inbox\/sqlite\//))
  expect(files.length, files.join('\n')).toBeLessThanOrEqual(most)
})
