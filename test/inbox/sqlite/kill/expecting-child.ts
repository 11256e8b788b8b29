import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver } from '../../../../src/index.ts'
import { verify } from '../../../conformance/sending.ts'
import { silent } from '../../../support/silent.ts'
import { serve } from '../../kill/child.ts'
import { expectEnds } from '../../kill/expect-ends.ts'
import type { FileTask } from './child.ts'

// A process that will be killed. It writes a row for each media item that is overdue to the file of the inbox.

const { path } = JSON.parse(process.argv[2] as string) as FileTask
const receiver = createReceiver({
  verify,
  inbox: sqliteInbox({ path, maxWaiting: 1_000_000 }),
  retry: { attempts: 10, baseMs: 10 },
  logger: silent,
})
expectEnds(receiver, (mediaId, { transaction }) =>
  transaction((database) => void database.prepare('INSERT INTO written VALUES (?)').run(mediaId)),
)
serve(receiver)
