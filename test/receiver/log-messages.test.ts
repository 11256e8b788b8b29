import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import {
  createReceiver,
  type Handler,
  memoryInbox,
  type ReceiverOptions,
  unverified,
  urlToken,
} from '../../src/index.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

// Values of the sender belong in the details of a line. In its message they could forge lines, and nobody could group by it.

const marker = 'sent-71c3'
const hostile = `${marker}\nerror: all events were lost\u001b[2K`

/** A payload whose every text is hostile. */
const payload = {
  type: `video.${hostile}`,
  media_id: hostile,
  title: hostile,
  user_id: hostile,
  status: hostile,
  media_type: hostile,
  emitted_at: hostile,
  qualities: { [hostile]: hostile },
  [hostile]: hostile,
}

function watched(options: Partial<ReceiverOptions> = {}) {
  const { logger, lines } = recordingLogger()
  const receiver = createReceiver({ verify: unverified(), logger, ...options })
  const send = (fields: object | string = {}, url = '/') => {
    const body = new TextEncoder().encode(
      typeof fields === 'string' ? fields : JSON.stringify({ ...payload, ...fields }),
    )
    return receiver.receive({ method: 'POST', url, headers: new Headers({ 'x-signature': hostile.slice(0, 9) }), body })
  }
  return { receiver, lines, send }
}

/** Expects that lines were logged, and that none has a value of the sender in its message. */
function expectConstant(lines: ReturnType<typeof watched>['lines'], atLeast: number) {
  expect(lines.length).toBeGreaterThanOrEqual(atLeast)
  expect(lines.map(({ message }) => message).filter((message) => message.includes(marker))).toEqual([])
}

test('a type that no handler receives is named in the details', async () => {
  const { lines, send } = watched({ handlers: { 'encoding.finished': () => {} } })
  expect(await send()).toMatchObject({ outcome: 'ignored' })
  expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', details: { type: payload.type } }))
  expectConstant(lines, 2)
})

test.each([
  ['memory', async () => memoryInbox()],
  ['a file', async () => sqliteInbox({ path: join(await temporaryFolder(), 'events.db') })],
])('what happens to an event in %s is logged without its values', async (_, inbox) => {
  const { receiver, lines, send } = watched({ inbox: await inbox(), retry: { attempts: 3, baseMs: 1 } })
  let runs = 0
  const handler: Handler = ({ mediaId }) => {
    runs++
    if (mediaId !== hostile) receiver.off(handler)
    throw new Error('the handler failed')
  }
  receiver.onAny(handler)
  expect(await send()).toMatchObject({ outcome: 'accepted' })
  expect(await send()).toMatchObject({ outcome: 'duplicate' })
  await vi.waitFor(async () => expect(await receiver.inbox.stats()).toMatchObject({ deadLetters: 1 }))
  expect(runs).toBe(3)
  expect(await send({ media_id: `${hostile} 2` })).toMatchObject({ outcome: 'accepted' })
  await vi.waitFor(() => expect(lines.map(({ message }) => message)).toContain('no handler is registered for its type'))
  await receiver.close()
  expectConstant(lines, 8)
})

test('rejections are logged without the values of the delivery', async () => {
  const { lines, send } = watched({ verify: urlToken({ secret: 'a-secret' }) })
  for (const url of ['/', `/?token=${encodeURIComponent(hostile)}`]) await send({}, url)
  const { lines: more, send: sendMore } = watched()
  for (const body of [hostile, '[]', JSON.stringify({ type: { [hostile]: hostile } }), '{"type":"a","media_id":{}}'])
    expect(await sendMore(body)).toMatchObject({ outcome: 'malformed' })
  expectConstant([...lines, ...more], 2)
})

test('the look-up of an event is logged without its values', async () => {
  const { receiver, lines } = watched({ handlers: { 'encoding.finished': () => {} } })
  expect(await receiver.accept({ type: 'encoding.finished', mediaId: hostile, title: hostile })).toBe('accepted')
  expectConstant(lines, 1)
})
