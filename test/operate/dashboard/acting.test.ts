import { expect, test } from 'vitest'
import { type Dashboard, dashboard } from '../../../src/operate/dashboard/index.ts'
import { serve } from '../../support/serve.ts'
import { failing, receiverWith, send } from './failing-receiver.ts'

const operators = { authorize: () => true }

/** Sends a form, follows the redirect, and returns the page. */
async function act(page: Dashboard, route: string, form: Record<string, string> | [string, string][]): Promise<string> {
  const headers = { host: 'localhost', origin: 'http://localhost' }
  const init = { method: 'POST', body: new URLSearchParams(form), headers }
  const response = await page.fetch(new Request(`http://localhost/${route}`, init))
  const location = response.headers.get('location')
  if (location === null) return response.text()
  return (await page.fetch(new Request(`http://localhost${location}`))).text()
}

const causeIn = (html: string) => /name="cause" value="([^"]+)"/.exec(html)?.[1] ?? ''
const untilIn = (html: string) => /name="until" value="([^"]+)"/.exec(html)?.[1] ?? ''
const read = async (page: Dashboard, route: string) =>
  (await page.fetch(new Request(`http://localhost/${route}`))).text()

test('a whole cause is replayed, and other causes stay', async () => {
  const { receiver, state } = await failing(5)
  receiver.on('encoding.failed', () => Promise.reject(new Error('another')), { name: 'other' })
  await send(receiver, 'media-6', { type: 'encoding.failed' })
  await expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(6)
  const page = dashboard(receiver, operators)
  const html = await read(page, 'dead-letters')
  state.works = true
  // The most frequent cause is the first.
  const shown = await act(page, 'replay', { scope: 'found', cause: causeIn(html), until: untilIn(html) })
  expect(shown).toContain('5 dead letters replayed.')
  const left = await receiver.inbox.deadLetters.list()
  expect(left.map(({ event }) => event?.type)).toEqual(['encoding.failed'])
})

test('discarding asks first, and takes only what the operator has seen', async () => {
  const { receiver } = await failing(3)
  const page = dashboard(receiver, operators)
  const html = await read(page, 'dead-letters')
  const form = { scope: 'found', cause: causeIn(html), until: untilIn(html) }
  expect(await act(page, 'discard', form)).toContain('Discard 3 dead letters?')
  expect((await receiver.inbox.stats()).deadLetters).toBe(3)
  await expect.poll(() => Date.now()).toBeGreaterThan(Number(form.until))
  await send(receiver, 'media-4')
  await expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(4)
  expect(await act(page, 'discard', { ...form, confirmed: 'yes' })).toContain('3 dead letters discarded.')
  expect((await receiver.inbox.deadLetters.list()).map(({ event }) => event?.mediaId)).toEqual(['media-4'])
})

test('replaying comes first, and only the question before discarding has a dangerous button', async () => {
  const { receiver, keys } = await failing(2)
  const page = dashboard(receiver, operators)
  const list = await read(page, 'dead-letters')
  for (const route of ['', 'dead-letters', `dead-letters?cause=${causeIn(list)}`, `event?key=${keys[0]}`]) {
    const buttons = (await read(page, route)).match(/<button[^>]*>(Replay|Discard)[^<]*/g) ?? []
    expect([route, buttons[0]]).toEqual([route, expect.stringMatching(/class="primary">Replay/)])
    expect([route, buttons[1]]).toEqual([
      route,
      expect.stringMatching(/class="secondary" formaction="\/discard">Discard/),
    ])
    expect(buttons.join()).not.toContain('danger')
  }
  expect(await act(page, 'discard', { key: keys[0] ?? '' })).toMatch(
    /class="danger">Discard this dead letter permanently/,
  )
})

test('all events of a filter are replayed or retried, and others stay', async () => {
  const { receiver, state } = await failing(3)
  receiver.on('encoding.failed', () => Promise.reject(new Error('another')), { name: 'other' })
  await send(receiver, 'media-4', { type: 'encoding.failed' })
  receiver.on('file.received', () => Promise.reject(new Error('later')), {
    retry: { attempts: 2, baseMs: 86_400_000, maxMs: 86_400_000 },
  })
  await send(receiver, 'media-5', { type: 'file.received' })
  await expect.poll(async () => (await receiver.inbox.stats()).deadLetters).toBe(4)
  await expect.poll(async () => (await receiver.inbox.stats()).retrying).toBe(1)
  const page = dashboard(receiver, operators)
  expect(await read(page, 'events?state=dead')).toContain('Replay all 4')
  expect(await read(page, 'events?state=retrying')).toContain('Retry all 1 now')
  expect(await read(page, 'events')).toContain('Select events to act on them.')
  const html = await read(page, 'events?state=dead&type=encoding.finished')
  expect(html).toContain('Replay all 3')
  state.works = true
  const form = { scope: 'events', state: 'dead', type: 'encoding.finished', until: untilIn(html) }
  expect(await act(page, 'replay', form)).toContain('3 dead letters replayed.')
  expect((await receiver.inbox.deadLetters.list()).map(({ event }) => event?.type)).toEqual(['encoding.failed'])
  const retried = await act(page, 'retry', { scope: 'events', state: 'retrying', until: String(Date.now()) })
  expect(retried).toContain('1 event started again.')
})

test('missing events are reported, and do not fail the rest', async () => {
  const { receiver, keys } = await failing(2)
  await receiver.inbox.deadLetters.discard(keys[0] ?? '')
  const page = dashboard(receiver, operators)
  const shown = await act(page, 'discard', [...keys.map((key): [string, string] => ['key', key]), ['confirmed', 'yes']])
  expect(shown).toContain('1 of 2 dead letters discarded.')
  expect(shown).toContain('1 dead letter skipped: already replayed or discarded by another user or process.')
})

test('an empty selection is said', async () => {
  const { receiver } = await failing(1)
  expect(await act(dashboard(receiver, operators), 'replay', { scope: 'keys' })).toContain('Nothing was selected.')
})

test.each<Record<string, string>>([
  { scope: 'all' },
  { scope: 'found', until: '1' },
  { scope: 'some' },
  { scope: 'events', until: '1' },
  { scope: 'events', state: 'handled', until: '1' },
  { scope: 'all', until: 'x' },
])('the selection %j is rejected', async (form) => {
  const { receiver } = await failing(1)
  expect(await act(dashboard(receiver, operators), 'replay', form)).toContain('does not say which events are meant')
  expect((await receiver.inbox.stats()).deadLetters).toBe(1)
})

test('events that wait for their next attempt are retried now', async () => {
  const receiver = receiverWith({ retry: { attempts: 2, baseMs: 3_600_000, maxMs: 3_600_000 } })
  let calls = 0
  receiver.on('encoding.finished', () => {
    calls++
    if (calls <= 3) throw new Error('not yet')
  })
  for (const media of ['a', 'b', 'c']) await send(receiver, media)
  await expect.poll(async () => (await receiver.inbox.stats()).retrying).toBe(3)
  const page = dashboard(receiver, operators)
  expect(await read(page, '')).toContain('Retry all 3 now')
  expect(await act(page, 'retry', { scope: 'all', until: String(Date.now()) })).toContain('3 events started again.')
  await expect.poll(() => calls).toBe(6)
})

test('an action never leads to another site', async () => {
  const { receiver } = await failing(1)
  const origin = await serve(dashboard(receiver, operators).node)
  for (const back of ['//evil.example', 'https://evil.example', '/evil', '\\\\evil.example', 'a/../../b']) {
    const body = new URLSearchParams({ key: 'none', back })
    const init = { method: 'POST', body, headers: { origin }, redirect: 'manual' } as const
    expect((await fetch(`${origin}/replay`, init)).headers.get('location')).toMatch(/^\/\?notice=[\w-]+$/)
  }
})

test('a bulk action that this process does not know is said', async () => {
  const { receiver } = await failing(1)
  expect(await read(dashboard(receiver, operators), 'bulk-action?id=unknown')).toContain('Unknown action')
})
