import { describe, expect, test } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { testSeed } from '../../support/test-seed.ts'
import { faultsOf, postgresText } from './kill/report.ts'
import { killRun } from './kill/run.ts'

describe.skipIf(!findPostgres())('postgresInbox', () => {
  // `npm run soak -- postgres` kills more often.
  test('loses no acknowledged event by kills, and commits the transaction of each once', async () => {
    const server = await PostgresServer.start()
    const options = { kills: 3, seed: testSeed(), transaction: true }
    try {
      const report = await killRun(server, options)
      console.info(postgresText(report, options))
      expect(faultsOf(report, true), `seed ${options.seed}`).toEqual([])
    } finally {
      await server.remove()
    }
  })
})
