import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { postgresInbox } from '../../../../src/inbox/postgres.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'
import { seeded } from '../../../support/seeded.ts'
import { silent } from '../../../support/silent.ts'
import { testSeed } from '../../../support/test-seed.ts'

// Handles events until it meets one that makes it crash.
const { url, schema } = JSON.parse(process.argv[2] as string) as { url: string; schema: string }
process.on('disconnect', () => process.exit(1))

const random = seeded(testSeed())
const pool = new Pool({ connectionString: url })
const receiver = createReceiver({
  verify: unverified(),
  logger: silent,
  // Long enough for a busy machine: a lease that is lost counts as a crash.
  inbox: postgresInbox({ pool, schema, leaseMs: 1_000 }),
})
receiver.onAny(async ({ mediaId }, { transaction }) => {
  const isCulprit = mediaId.startsWith('culprit')
  await sleep(isCulprit ? 100 : random() * 200)
  if (isCulprit) process.kill(process.pid, 'SIGKILL')
  await transaction((client) => client.query('INSERT INTO effect VALUES ($1)', [mediaId]))
})
receiver.ready().catch(() => process.exit(1))
