import { openDatabase } from '../../../../src/inbox/sqlite/driver.ts'

// A process that writes to the file of an inbox: `hold` takes the lock for some time, again and again.
const [, , path = '', holdMs = '', delayMs = '', times = ''] = process.argv
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const database = openDatabase(path)
database.exec('PRAGMA busy_timeout = 10000')
process.send?.('ready')
for (let i = 0; i < Number(times); i++) {
  database.exec('BEGIN IMMEDIATE')
  await pause(Number(holdMs))
  database.exec('COMMIT')
  await pause(Number(delayMs))
}
database.close()
process.disconnect?.()
