import { openInboxFile } from '../../../../src/inbox/sqlite.ts'

// A process that asks for the next attempt of an event, in the file of an inbox that another process has open.
const [, , path = '', key = ''] = process.argv
const file = openInboxFile(path)
process.send?.(await file.events.retryNow(key))
file.close()
process.disconnect?.()
