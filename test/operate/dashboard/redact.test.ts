import { describe, expect, test } from 'vitest'
import type { DeadLetter, Receiver } from '../../../src/index.ts'
import { createDashboard } from '../../../src/operate/dashboard/dashboard.ts'
import { type DashboardOptions, dashboard } from '../../../src/operate/dashboard/index.ts'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'
import { receiverWith, send, untilDead } from './failing-receiver.ts'

const secret = 'The secret title'

/** Makes a receiver with a dead letter whose payload is secret, and returns all its pages as one text. */
async function pagesOf(receiver: Receiver, options: Partial<DashboardOptions>): Promise<string> {
  const page = dashboard(receiver, { ...options, authorize: () => true })
  const [dead] = await receiver.inbox.deadLetters.list()
  const pages = ['', 'events', 'dead-letters', 'media?id=a-film', `event?key=${encodeURIComponent(dead?.key ?? '')}`]
  const texts = pages.map(async (each) => (await page.fetch(new Request(`http://localhost/${each}`))).text())
  return (await Promise.all(texts)).join('\n')
}

async function withSecret() {
  const seen: object[] = []
  const receiver = receiverWith()
  receiver.onAny(({ payload }) => {
    seen.push(payload)
    throw new Error('no')
  })
  await send(receiver, 'a-film', { title: secret, note: 'a note' })
  await untilDead(receiver, 1)
  return { receiver, seen }
}

describe('without redact', () => {
  test('titles and payloads are shown', async () => {
    const { receiver } = await withSecret()
    const text = await pagesOf(receiver, {})
    expect(text.split(secret).length).toBeGreaterThan(4)
    expect(text).toContain('a note')
  })
})

describe('redact: true', () => {
  test('hides titles and payloads on every page', async () => {
    const { receiver } = await withSecret()
    const text = await pagesOf(receiver, { redact: true })
    expect(text).not.toContain(secret)
    expect(text).not.toContain('a note')
    expect(text).toContain('Hidden by the redact option')
    expect(text).toContain('a-film')
  })
})

describe('a search', () => {
  test('finds no unreadable delivery by bytes that are hidden, nor all of them by an empty id', async () => {
    const receiver = receiverWith()
    receiver.onAny(() => {})
    const body = new TextEncoder().encode('{"user":"ana"')
    await receiver.receive({ method: 'POST', url: '/', headers: new Headers(), body })
    const statusOf = async (id: string, redact?: true) => {
      const page = dashboard(receiver, { ...(redact && { redact }), authorize: () => true })
      return (await page.fetch(new Request(`http://localhost/media?id=${encodeURIComponent(id)}`))).status
    }
    expect(await statusOf('"user":"a')).toBe(200)
    expect(await statusOf('"user":"a', true)).toBe(404)
    expect(await statusOf('')).toBe(404)
  })

  test('does not find a title that is hidden, so that no one can guess it', async () => {
    const { receiver } = await withSecret()
    const page = dashboard(receiver, { redact: true, authorize: () => true })
    const search = async (place: string) => (await page.fetch(new Request(`http://localhost/${place}`))).text()
    expect(await search('dead-letters?text=secret')).toContain('No dead letter matches.')
    expect(await search('events?title=secret')).toContain('No event matches.')
    expect(await search('dead-letters.jsonl?text=secret')).toBe('')
    expect(await search('events.jsonl?title=secret')).toBe('')
  })
})

describe('a function', () => {
  test('decides what is shown, and cannot change what handlers get', async () => {
    const { receiver, seen } = await withSecret()
    const redact = (payload: Record<string, unknown>) => {
      payload['title'] = '***'
      return payload
    }
    const text = await pagesOf(receiver, { redact })
    expect(text).not.toContain(secret)
    expect(text).toContain('***')
    expect(text).toContain('a note')
    await receiver.inbox.deadLetters.replay((await receiver.inbox.deadLetters.list())[0]?.key ?? '')
    await expect.poll(() => seen.length).toBe(4)
    expect(seen.at(-1)).toMatchObject({ title: secret })
  })

  test('that leaves the title shows it', async () => {
    const { receiver } = await withSecret()
    const text = await pagesOf(receiver, { redact: ({ note: _, ...payload }) => payload })
    expect(text).toContain(secret)
    expect(text).not.toContain('a note')
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
    ['returns nothing', () => undefined],
    ['returns a promise', async () => ({ title: secret })],
    ['rejects', () => Promise.reject(new Error('no'))],
    ['returns a BigInt in it', () => ({ title: secret, size: 1n })],
    [
      'returns a cycle',
      () => {
        const shown: Record<string, unknown> = { title: secret }
        shown['self'] = shown
        return shown
      },
    ],
    [
      'returns a getter that throws',
      () => ({
        title: secret,
        get size() {
          throw new Error('no')
        },
      }),
    ],
    ['returns a BigInt', () => 1n],
    ['returns what is no JSON', () => ({ title: secret, toJSON: () => undefined })],
  ])('that %s hides the payload', async (_, redact) => {
    const { receiver } = await withSecret()
    const text = await pagesOf(receiver, { redact: untyped(redact) })
    expect(text).not.toContain(secret)
    expect(text).toContain('Hidden by the redact option')
  })
})

describe('an unreadable delivery', () => {
  const show = async (body: string | Uint8Array, options: Partial<DashboardOptions>) => {
    const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
    const now = new Date('2026-03-01T12:00:00Z')
    const unreadable = { reason: 'type is missing', receivedAt: now, eventId: undefined, body: bytes }
    const common = { key: 'unreadable:1', receivedAt: now, attempts: 0, completed: [], failures: [], diedAt: now }
    const deadLetter: DeadLetter = { ...common, event: undefined, unreadable }
    const deadLetters = { list: () => [deadLetter], get: () => deadLetter, replay: () => true, discard: () => true }
    const stats = () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: 1 })
    const page = createDashboard(
      { inbox: { stats, deadLetters }, name: 'test', logger: silent },
      { ...options, authorize: () => true },
    )
    return (await page.fetch(new Request('http://localhost/event?key=unreadable:1'))).text()
  }

  test.each([
    ['as text', '{"title":"Holiday"}', {}, 'Holiday'],
    ['as a dump', new Uint8Array([0xff, 0xfe]), {}, 'ff fe'],
    ['changed by a function', '{"title":"Holiday"}', { redact: () => ({ title: '***' }) }, '***'],
  ])('is shown %s', async (_, body, options, shown) => {
    expect(await show(body, options)).toContain(shown)
  })

  test.each([
    ['by true', '{"title":"Holiday"}', { redact: true as const }],
    ['if a function gets no object', 'not JSON: Holiday', { redact: (payload: Record<string, unknown>) => payload }],
  ])('is hidden %s', async (_, body, options) => {
    const text = await show(body, options)
    expect(text).not.toContain('Holiday')
    expect(text).toContain('Hidden by the redact option')
    expect(text).toContain('type is missing')
  })
})
