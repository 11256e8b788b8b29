import { expect, onTestFinished, vi } from 'vitest'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { PermanentFailure } from '../../../src/index.ts'
import { freshPath } from '../../inbox/sqlite/sqlite-tests.ts'
import { receiverWith, send, untilDead } from './failing-receiver.ts'

const hourMs = 3_600_000

const markup = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
/** Titles as users type them: long, without a space, right to left, and with markup. */
const titles = ['Holiday.mp4', `${'x'.repeat(400)}.mp4`, '\u202e4pm.yadiloH', markup.repeat(20), '🎬'.repeat(200)]

/** The number of events, and of those that each cause fails. */
const events = 2_000
export const failed = { catalogue: 260, mail: 60, subtitles: 25, search: 5 }

/**
 * Makes a receiver that has had 2,000 events in the last 26 hours, of which 350 died for four causes. The most frequent
 * began 20 hours ago and gets worse. Handlers succeed once their cause is in `fixed`.
 */
export async function mess() {
  const inbox = sqliteInbox({ path: await freshPath() })
  const receiver = receiverWith({ inbox, retry: { attempts: 1 } })
  await receiver.ready()
  const fixed = new Set<string>()
  const fail = (cause: keyof typeof failed, error: Error) => {
    if (!fixed.has(cause)) throw error
  }
  receiver.on('encoding.finished', ({ mediaId }) => fail('catalogue', new TypeError(`no shelf for "${mediaId}"`)), {
    name: 'catalogue',
  })
  receiver.on('encoding.failed', () => fail('mail', new PermanentFailure(`550 rejected: ${'y'.repeat(3_000)}`)), {
    name: 'mail',
  })
  receiver.on('partial.finished', () => fail('subtitles', new Error(`no track in ${markup}`)), { name: 'subtitles' })
  receiver.on('encoding.started', () => fail('search', new Error('ETIMEDOUT 10.0.0.7:9200')), { name: 'search' })
  receiver.on('file.received', () => {}, { name: 'index' })

  const now = Date.now()
  vi.useFakeTimers({ toFake: ['Date'], shouldAdvanceTime: true })
  onTestFinished(() => void vi.useRealTimers())
  let sent = 0
  /** Sends events of one type at a time so many hours ago, and waits until they are handled or dead. */
  const past = async (hours: number, type: string, count: number) => {
    vi.setSystemTime(now - hours * hourMs)
    for (let index = 0; index < count; index++, sent++)
      await send(receiver, `media-${sent}`, { type, title: titles[sent % titles.length] })
    await expect.poll(() => receiver.inbox.stats()).toMatchObject({ waiting: 0, running: 0, retrying: 0 })
  }
  const { catalogue, mail, subtitles, search } = failed
  await past(26, 'file.received', events - catalogue - mail - subtitles - search)
  await past(25.5, 'encoding.failed', mail)
  await past(20.5, 'encoding.finished', 20)
  await past(6.5, 'partial.finished', subtitles)
  await past(1.5, 'encoding.finished', 40)
  await past(0.5, 'encoding.finished', catalogue - 60)
  await past(0.5, 'encoding.started', search)
  vi.useRealTimers()
  await untilDead(receiver, catalogue + mail + subtitles + search)
  return { receiver, fixed }
}
