import { expect, test } from 'vitest'
import { filesBeforeHandler } from '../support/files-before-handler.ts'

/** Maximum number of files that a reader has to open to follow a delivery from the adapter to the handler. */
const most = 30

test(`a delivery passes through at most ${most} files between Express and the handler`, async () => {
  const files = await filesBeforeHandler()
  expect(files.length, files.join('\n')).toBeLessThanOrEqual(most)
})
