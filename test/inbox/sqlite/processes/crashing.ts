import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'

// A process over the file of an inbox. The event "fatal" kills it. The others take `handlerMs`, and note the
// title of their event when they have finished.
const [, , path = '', notesPath = '', handlerMs = '0'] = process.argv

const ignore = () => {}
const receiver = createReceiver({
  verify: unverified(),
  inbox: sqliteInbox({ path }),
  logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
})
receiver.onAny(async ({ title }) => {
  if (title === 'fatal') {
    await pause(30)
    process.kill(process.pid, 'SIGKILL')
  }
  await pause(Number(handlerMs))
  appendFileSync(notesPath, `${title}\n`)
})

setInterval(async () => {
  const { waiting, running, retrying } = await receiver.inbox.stats()
  if (waiting + running + retrying === 0) process.send?.('idle')
}, 20)
process.send?.('ready')
process.on('disconnect', () => process.exit(1))
