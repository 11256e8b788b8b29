import { describe, expect, test, vi } from 'vitest'
import { filesBeforeHandler } from '../../support/files-before-handler.ts'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { postgresTests } from './postgres-tests.ts'

/** Maximum number of files that a reader has to open to follow a delivery from the adapter over Postgres to the handler. */
const most = 60

describe.skipIf(!findPostgres())('a delivery', () => {
  const postgres = postgresTests()

  test(`passes through at most ${most} files between Express and the handler`, async () => {
    // What the inbox does beside, such as renewing its lease, is not on the path.
    await vi.waitFor(async () => {
      const files = await filesBeforeHandler(postgres.server.url)
      expect(files).toContainEqual(expect.stringMatching(/^src\/inbox\/postgres\//))
      expect(files.length, files.join('\n')).toBeLessThanOrEqual(most)
    })
  })
})
