import { openDatabase } from '../../../../src/inbox/sqlite/driver.ts'

// A process that takes the lock of an inbox's file for some time, again and again.
const [, , path = '', holdMs = '', delayMs = '', times = '', begin = 'BEGIN IMMEDIATE'] = process.argv
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const database = openDatabase(path)
database.exec('PRAGMA busy_timeout = 10000')
for (let i = 0; i < Number(times); i++) {
  database.exec(begin)
  if (i === 0) process.send?.('holds it')
  await pause(Number(holdMs))
  database.exec('COMMIT')
  await pause(Number(delayMs))
}
database.close()
process.disconnect?.()
