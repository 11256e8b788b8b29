import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'
import { deliver, samplePayload } from '../../../../src/testing/index.ts'

/** A message of the process that has the file open first, after `ready`. It has the fields of one event. */
export interface FromOwner {
  readonly started?: string
  readonly aborted?: string
  /** When it was aborted (ms since the epoch). */
  readonly abortedAt?: number
  readonly logged?: string
  readonly answered?: number
}

const [, , path = ''] = process.argv
const tell = (message: FromOwner | 'ready') => process.send?.(message)
const ignore = () => {}
const error = (_: object, message: string) => tell({ logged: message })

const receiver = createReceiver({
  verify: unverified(),
  inbox: sqliteInbox({ path, concurrency: 2 }),
  logger: { debug: ignore, info: ignore, warn: ignore, error },
})

// Handlers never end by themselves.
receiver.onAny(({ mediaId }, { signal }) => {
  tell({ started: mediaId })
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => {
      tell({ aborted: signal.reason.code, abortedAt: Date.now() })
      reject(signal.reason)
    })
  })
})

/** Does what a backup does: it opens, reads and closes every file of the folder. */
function readEverything() {
  for (const name of readdirSync(dirname(path))) readFileSync(join(dirname(path), name))
}

process.on('message', async (mediaId: string) => {
  const { status } = await deliver(receiver, samplePayload('encoding.finished', { media_id: mediaId }))
  // Closing a file releases the locks that this process has on it.
  if (mediaId === 'last before the backup') readEverything()
  tell({ answered: status })
})
process.on('disconnect', () => process.exit(1))
tell('ready')
