import { userInfo } from 'node:os'
import { describe, expect, test } from 'vitest'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { memoryInbox } from '../../../src/index.ts'
import { type Dashboard, dashboard } from '../../../src/operate/dashboard/index.ts'
import { finish } from '../../cli/program.ts'
import { freshPath } from '../../inbox/sqlite/sqlite-tests.ts'
import { receiverWith, send, untilDead } from './failing-receiver.ts'

const read = async (page: Dashboard, place: string) =>
  (await (await page.fetch(new Request(`http://localhost/${place}`))).text()).replace(/<!--.*?-->/g, '')

async function act(page: Dashboard, route: string, form: Record<string, string> | [string, string][]): Promise<void> {
  const headers = { host: 'localhost', origin: 'http://localhost' }
  const init = { method: 'POST', body: new URLSearchParams(form), headers }
  expect((await page.fetch(new Request(`http://localhost/${route}`, init))).status).toBe(303)
}

/** The text of what operators did, as a page shows it. */
const operationsIn = (html: string): string[] => {
  const section = /<section id="(?:operations|attempts)".*?<\/section>/s.exec(html)?.[0] ?? ''
  const items = section.split(/<li[^>]*>/).slice(1)
  return items.map((item) =>
    item
      .replace(/<\/ul>.*/s, '')
      .replace(/<time[^>]*>.*?<\/time>/g, 'now')
      .replace(/<[^>]*>/g, '')
      .replace(/\s+/g, ' ')
      .trim(),
  )
}

async function failing(inbox: Parameters<typeof receiverWith>[0] = {}) {
  const receiver = receiverWith({ ...inbox, eventKey: ({ mediaId }) => mediaId })
  await receiver.ready()
  receiver.onAny(() => Promise.reject(new Error('no room')), { name: 'publish' })
  for (const id of ['m1', 'm2', 'm3']) await send(receiver, id)
  await untilDead(receiver, 3)
  const page = dashboard(receiver, { authorize: () => ({ user: 'ana' }) })
  return { receiver, page }
}

describe('what operators did', () => {
  test('is shown on the overview, the event and its cause, with who, why and the outcome, also after a restart', async () => {
    const path = await freshPath()
    const { receiver, page } = await failing({ inbox: sqliteInbox({ path }) })
    await act(page, 'discard', { key: 'm1', confirmed: 'yes', reason: 'a test of ours' })
    await act(page, 'pause', { scope: 'handler', handler: 'publish' })
    const until = String(Date.now() + 1_000)
    const cause = /name="cause" value="([^"]+)"/.exec(await read(page, 'dead-letters'))?.[1] ?? ''
    await act(page, 'replay', { scope: 'found', cause, until })
    const all = [
      'ana replayed 2 events, now',
      'ana paused the handler publish, now',
      'ana discarded 1 event, now: “a test of ours”',
    ]
    const replayed = (outcome: string) => [`${all[0]}. 2 events ${outcome}.`]
    const paused = replayed('waiting, running or waiting for a retry')
    await expect.poll(async () => operationsIn(await read(page, ''))).toEqual([...paused, ...all.slice(1)])
    expect(operationsIn(await read(page, 'event?key=m2'))).toContain(paused[0])
    for (const place of ['event?key=m1', 'media?id=m1']) expect(operationsIn(await read(page, place))).toEqual([all[2]])
    await act(page, 'resume', { scope: 'handler', handler: 'publish' })
    await untilDead(receiver, 2)
    const ended = replayed('failed again, dead letters now')
    expect(operationsIn(await read(page, `dead-letters?cause=${cause}`))).toEqual(ended)

    await receiver.close()
    const later = receiverWith({ inbox: sqliteInbox({ path }) })
    await later.ready()
    const shown = operationsIn(await read(dashboard(later, { authorize: () => true }), ''))
    expect(shown).toEqual(['ana resumed the handler publish, now', ...all])
  })

  test('is also what the command line did', async () => {
    const path = await freshPath()
    const { receiver, page } = await failing({ inbox: sqliteInbox({ path }) })
    expect((await finish(['inbox', path, 'discard', 'm1', '--reason', 'a test'])).code).toBe(0)
    expect((await finish(['inbox', path, 'replay', '--all'])).code).toBe(0)
    await untilDead(receiver, 2)
    const who = userInfo().username
    expect(operationsIn(await read(page, ''))).toEqual([
      `${who} replayed 2 events, now`,
      `${who} discarded 1 event, now: “a test”`,
    ])
  })

  test('is kept in the process for an inbox that stores nothing of it', async () => {
    const { page } = await failing({ inbox: memoryInbox() })
    expect(await read(page, 'event?key=m1')).toMatch(/action="\/replay".*name="reason"/s)
    await act(page, 'replay', { key: 'm1', reason: 'fixed' })
    await expect
      .poll(async () => operationsIn(await read(page, '')))
      .toEqual(['ana replayed 1 event, now: “fixed”. 1 event failed again, dead letters now.'])
    expect(await read(page, 'event?key=m2')).not.toContain('ana replayed')
  })

  test('is on a page of its own as far back as it is kept', async () => {
    const { receiver, page } = await failing({ inbox: sqliteInbox({ path: await freshPath() }) })
    for (let count = 1; count <= 30; count++) await receiver.inbox.operations?.add({ act: 'replay', by: 'ben', count })
    const overview = await read(page, '')
    expect(operationsIn(overview)).toHaveLength(5)
    expect(overview).toContain('<a href="/operations">All operations</a>')
    expect(operationsIn(await read(page, 'operations'))).toHaveLength(25)
    expect(operationsIn(await read(page, 'operations?page=2'))).toEqual(
      [5, 4, 3, 2, 1].map((count) => `ben replayed ${count} event${count === 1 ? '' : 's'}, now`),
    )
  })
})
