import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { DeadLetter, ReadableInbox } from '../../../src/inbox/reading.ts'
import { createDashboard } from '../../../src/operate/dashboard/dashboard.ts'
import { type Dashboard, type DashboardOptions, dashboard } from '../../../src/operate/dashboard/index.ts'
import { serve } from '../../support/serve.ts'
import { silent } from '../../support/silent.ts'
import { failing, receiverWith, send, untilDead } from './failing-receiver.ts'

const operators = { authorize: () => true }

async function linesOf(page: Dashboard, route: string) {
  const response = await page.fetch(new Request(`http://localhost/${route}`))
  expect(response.status).toBe(200)
  const text = await response.text()
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
}

/** An inbox with dead letters that are made when they are listed, which counts them. */
function endless(count: number, breaksAfter = Number.POSITIVE_INFINITY) {
  const state = { listed: 0 }
  const body = new Uint8Array(20_000).fill(0xff)
  const at = new Date(0)
  const list = ({ limit = 100, offset = 0 } = {}): DeadLetter[] => {
    if (offset >= breaksAfter) throw new Error('the connection ended')
    state.listed += limit
    return Array.from({ length: Math.min(limit, count - offset) }, (_, index) => {
      const unreadable = { reason: 'no', receivedAt: at, eventId: undefined, body }
      return { key: `${offset + index}`, event: undefined, unreadable, receivedAt: at, diedAt: at, ...none }
    })
  }
  const inbox: ReadableInbox = {
    stats: () => ({ waiting: 0, running: 0, retrying: 0, deadLetters: count }),
    deadLetters: { list, get: () => undefined, replay: () => false, discard: () => false },
  }
  return { state, page: createDashboard({ inbox, name: 'other', logger: silent }, operators) }
}

const none = { attempts: 0, completed: [], failures: [] }

describe('the lines of JSON', () => {
  test('of dead letters are those of the filter, with their payloads', async () => {
    const { receiver } = await failing(3)
    const page = dashboard(receiver, operators)
    const lines = await linesOf(page, 'dead-letters.jsonl?text=media-2')
    expect(lines).toEqual([expect.objectContaining({ mediaId: 'media-2', attempts: 2, type: 'encoding.finished' })])
    expect(lines[0].payload.media_id).toBe('media-2')
    expect(lines[0].failures[0].handler).toBe('publish')
    expect(await linesOf(page, 'dead-letters.jsonl')).toHaveLength(3)
    expect(await linesOf(page, 'dead-letters.jsonl?handler=none')).toEqual([])
  })

  test('of events are those of the filter, of all its pages', async () => {
    const { receiver } = await failing(130)
    const page = dashboard(receiver, operators)
    const lines = await linesOf(page, 'events.jsonl?state=dead')
    expect(new Set(lines.map(({ key }) => key)).size).toBe(130)
    expect(lines[0]).toMatchObject({ state: 'dead', payload: { type: 'encoding.finished' } })
    expect(await linesOf(page, 'events.jsonl?type=file.received')).toEqual([])
  })

  test.each<[string, DashboardOptions['redact'], boolean]>([
    ['nothing of payloads and titles', true, false],
    ['what the function shows', ({ title: _, ...payload }) => payload, true],
  ])('with redact have %s', async (_, redact, hasPayload) => {
    const receiver = receiverWith()
    receiver.onAny(() => Promise.reject(new Error('no')))
    await send(receiver, 'a-film', { title: 'The secret title' })
    await untilDead(receiver, 1)
    const page = dashboard(receiver, { ...operators, ...(redact && { redact }) })
    for (const route of ['events.jsonl', 'dead-letters.jsonl']) {
      const lines = await linesOf(page, route)
      expect(JSON.stringify(lines)).not.toContain('The secret title')
      expect(lines[0].payload !== undefined).toBe(hasPayload)
    }
  })

  test('are linked from their lists, with the filter', async () => {
    const { receiver } = await failing(1)
    const page = dashboard(receiver, { authorize: () => 'read' })
    const html = async (route: string) => (await page.fetch(new Request(`http://localhost/${route}`))).text()
    expect(await html('dead-letters?handler=publish')).toContain('href="/dead-letters.jsonl?handler=publish" download')
    expect(await html('events?state=dead')).toContain('href="/events.jsonl?state=dead" download')
  })

  test('of bytes that are not UTF-8 are Base64', async () => {
    const [line] = await linesOf(endless(1).page, 'dead-letters.jsonl')
    expect(Buffer.from(line.bodyBase64, 'base64')).toEqual(Buffer.alloc(20_000, 0xff))
  })
})

describe('a client of the lines', () => {
  test('that does not read them holds up the reading of the inbox', async () => {
    const { state, page } = endless(1_000_000)
    const origin = await serve(page.node)
    const asked = request(`${origin}/dead-letters.jsonl`).end()
    const response = await new Promise<import('node:http').IncomingMessage>((resolve) => asked.on('response', resolve))
    response.pause()
    // Without that, the next thousand would be read within this time.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    expect(state.listed).toBe(1_000)
    asked.destroy()
  })

  test('gets all of them over a socket, and notices if they are cut off', async () => {
    const whole = await (await fetch(`${await serve(endless(1_200).page.node)}/dead-letters.jsonl`)).text()
    expect(whole.trimEnd().split('\n')).toHaveLength(1_200)
    const head = await fetch(`${await serve(endless(1).page.node)}/dead-letters.jsonl`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    const cut = await fetch(`${await serve(endless(3_000, 1_000).page.node)}/dead-letters.jsonl`)
    await expect(cut.text()).rejects.toThrow()
  })

  test('is told with a status that the inbox cannot be reached', async () => {
    const { page } = endless(1)
    const inbox: ReadableInbox = {
      stats: () => Promise.reject(new Error('down')),
      deadLetters: { list: () => [], get: () => undefined, replay: () => false, discard: () => false },
    }
    const down = createDashboard({ inbox, name: 'other', logger: silent }, operators)
    const status = async (each: Dashboard, route: string) =>
      (await each.fetch(new Request(`http://localhost/${route}`))).status
    expect(await status(down, 'dead-letters.jsonl')).toBe(503)
    expect(await status(page, 'events.jsonl')).toBe(404)
  })
})
