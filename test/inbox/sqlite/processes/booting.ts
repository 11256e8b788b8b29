import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'

// A process over the file of an inbox, which is killed soon after it has opened the file, as one that cannot boot.
const [, , path = ''] = process.argv

createReceiver({ verify: unverified(), inbox: sqliteInbox({ path }) }).onAny(() => new Promise(() => {}))
setTimeout(() => process.kill(process.pid, 'SIGKILL'), 100)
process.send?.('ready')
process.on('disconnect', () => process.exit(1))
