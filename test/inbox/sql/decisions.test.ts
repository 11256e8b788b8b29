import { expect, test } from 'vitest'
import type { SqliteInboxOptions } from '../../../src/inbox/sqlite.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { crashed, freshPath, receiverOver } from '../sqlite/sqlite-tests.ts'

const finished = (mediaId: string) => samplePayload('encoding.finished', { media_id: mediaId })

/** Opens a receiver whose log has every level. */
function watched(path: string, options: Partial<SqliteInboxOptions> = {}) {
  const { logger, lines } = recordingLogger()
  const decisions = () => lines.filter(({ level, message }) => level === 'debug' && /lane|counts/.test(message))
  return { receiver: receiverOver({ path, ...options }, { logger }), decisions }
}

test('what the inbox decides about lanes is logged at debug, without payloads', async () => {
  const { receiver, decisions } = watched(await freshPath())
  let attempts = 0
  receiver.onAny(
    () => {
      if (++attempts === 1) throw new Error('not yet')
    },
    { retry: { baseMs: 20 } },
  )
  await deliver(receiver, finished('m1'))
  await until(async () => attempts === 2)
  await receiver.close()
  const messages = decisions().map(({ message }) => message)
  expect(messages.filter((message) => message === 'claimed lanes')).toHaveLength(2)
  expect(messages).toContain('recorded ends and releases of lanes')
  expect(decisions()[0]?.details).toEqual({ lanes: 1, events: 1, room: 32, nextInMs: Number.POSITIVE_INFINITY })
  expect(JSON.stringify(decisions())).not.toMatch(/title|user_id|m1/)
})

test('a pause is the reason why a lane goes back', async () => {
  const { receiver, decisions } = watched(await freshPath(), { concurrency: 1 })
  let end = () => {}
  receiver.onAny(() => new Promise<void>((resolve) => (end = resolve)))
  for (const media of ['m1', 'm2']) await deliver(receiver, finished(media))
  await until(async () => decisions().filter(({ message }) => message === 'claimed lanes').length === 2)
  await receiver.inbox.pauses?.pause()
  const leaving = decisions().filter(({ message }) => message === 'a lane goes back: the inbox is paused or closing')
  expect(leaving).toHaveLength(1)
  expect(leaving[0]?.details).toEqual({ lane: expect.any(String), turn: 1, event: expect.any(Number) })
  end()
})

test('after a crash, the log says which event waits to run alone', async () => {
  const path = await freshPath()
  const before = watched(path)
  before.receiver.onAny((_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
  for (const media of ['m1', 'm2']) await deliver(before.receiver, finished(media))
  await until(async () => (await before.receiver.inbox.stats()).running === 2)
  const after = watched(await crashed(path))
  const handled: string[] = []
  after.receiver.onAny(async ({ mediaId }) => {
    handled.push(mediaId)
  })
  await until(async () => handled.length === 2)
  const messages = after.decisions().map(({ message }) => message)
  expect(messages).toContain('counts an event before it runs alone')
  expect(messages).toContain('a lane waits: its event may have made a process crash, so it runs alone')
})
