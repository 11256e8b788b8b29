import { mock } from 'node:test'
import { createReceiver, type Receiver, urlToken } from '../../src/index.ts'
import { dashboard } from '../../src/operate/dashboard/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { listen } from '../../test/support/listen.ts'
import { silent } from '../../test/support/silent.ts'
import type { Shown } from './shown.ts'

const secret = 'the token of the pictures'
const minutes = 6 * 60
const endedAt = Date.UTC(2026, 2, 1, 12)

/** The dashboard of a process that has run for six hours: with failures of two handlers, duplicates and forged deliveries. */
export async function showDashboard(): Promise<Shown> {
  const receiver = createReceiver({ verify: urlToken({ secret }), logger: silent, retry: { attempts: 1 } })
  receiver.on('encoding.finished', ({ title = '' }) => publish(title), { name: 'publish' })
  receiver.on('encoding.failed', ({ title = '' }) => notify(title), { name: 'notify' })
  mock.timers.enable({ apis: ['Date'], now: endedAt - minutes * 60_000 })
  let elapsedMs = 0
  const monotonic = mock.method(performance, 'now', () => (elapsedMs += 0.05))
  // It counts from here.
  const page = dashboard(receiver, { path: '/inbox', authorize: () => true })
  for (let minute = 0; minute <= minutes; minute++) {
    mock.timers.setTime(endedAt + (minute - minutes) * 60_000)
    await receiveFor(receiver, minute)
  }
  monotonic.mock.restore()
  const server = await listen(page.node)
  return {
    url: `${server.origin}/inbox`,
    async close() {
      mock.timers.reset()
      await server.close()
      await receiver.close()
    },
  }
}

function publish(title: string): void {
  if (title.startsWith('#')) throw new Error('the catalogue has no shelf “#”')
}

function notify(title: string): void {
  if (title.startsWith('#')) throw new TypeError("Cannot read properties of undefined (reading 'owner')")
}

/** What comes in a minute: more and less in waves. */
async function receiveFor(receiver: Receiver, minute: number): Promise<void> {
  const count = 4 + Math.round(2 * Math.sin(minute / 9))
  for (let each = 0; each < count; each++) {
    const fails = each === 0 && minute > 60 && (minute % 17 === 0 || minute % 89 === 0)
    const type = minute % 89 === 0 ? 'encoding.failed' : 'encoding.finished'
    const payload = samplePayload(type, {
      media_id: `${minute}-${each}`,
      emitted_at: new Date().toISOString(),
      title: fails ? '#1 Interview.mp4' : 'Interview.mp4',
    })
    await send(receiver, payload)
    if (each === 0 && minute % 10 === 0) await send(receiver, payload)
    if (each < 3 && minute % 20 === 0) await send(receiver, payload, 'forged')
  }
}

/** Delivers it, and waits until it is handled. */
async function send(receiver: Receiver, payload: ReturnType<typeof samplePayload>, token = secret) {
  const url = `/webhooks/media?token=${encodeURIComponent(token)}`
  const { handled } = await deliver(receiver, payload, { url })
  await handled
}
