import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createReceiver, unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { until } from '../support/inbox.ts'
import { silent } from '../support/silent.ts'
import { future, upgraded } from '../support/unreadable.ts'
import { finish, start } from './program.ts'
import { type InboxPlace, serve } from './served-inbox.ts'

/** A receiver of which one handler fails until it is fixed. */
async function openShop({ inbox: definition }: InboxPlace) {
  const receiver = createReceiver({
    verify: unverified(),
    inbox: definition(),
    logger: silent,
    retry: { attempts: 2, baseMs: 1 },
  })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
  await receiver.ready()
  const published: string[] = []
  let isFixed = false
  receiver.onAny(() => {}, { name: 'index' })
  receiver.on(
    'encoding.finished',
    ({ mediaId, title }) => {
      if (!isFixed) throw new TypeError(`no room\nfor ${title}`)
      published.push(mediaId)
    },
    { name: 'publish' },
  )
  const fix = () => {
    isFixed = true
  }
  return { receiver, published, fix }
}

/** Reads the last command that the program tells its user to type, as a shell does. */
async function commandIn(output: string): Promise<readonly string[]> {
  const line = output.split('\n').findLast((each) => each.startsWith('  npx media-webhooks inbox '))
  const { stdout } = await promisify(execFile)('bash', ['-c', `printf '%s\\0' ${line}`])
  const [npx, program, ...args] = stdout.split('\0').slice(0, -1)
  expect([npx, program]).toEqual(['npx', 'media-webhooks'])
  expect(args.slice(3).join(' ')).toMatch(/(^| )[0-9a-f]{8}$/)
  return args
}

/** Runs a command that has to succeed, and returns what it prints. */
async function print(args: readonly string[]): Promise<string> {
  const { code, output, errors } = await finish(args)
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  return output
}

/**
 * Tests what the command reads and changes in any inbox. What else it does is tested over a file.
 * @param remembers `true` if the inbox remembers events that were handled
 */
export function checkTarget(makePlace: () => Promise<InboxPlace>, remembers: boolean): void {
  test('tells why an event of a media item was not handled, and replays it once the handler is fixed', async () => {
    const place = await makePlace()
    const { receiver, published, fix } = await openShop(place)
    for (const type of ['file.received', 'encoding.finished'] as const)
      await deliver(receiver, samplePayload(type, { media_id: 'a film', title: "it's \u001b[31mred" }))
    await until(async () => (await receiver.inbox.stats()).deadLetters === 1)

    const story = await print(['inbox', place.target, 'media', 'a film', ...place.flags])
    if (remembers) expect(story).toMatch(/ handled {6}file\.received {6}a film {2}1 /)
    expect(story).toMatch(/ dead letter {2}encoding\.finished {2}a film {2}2 /)
    expect(story).toContain("\n  publish: TypeError: no room for it's \\u{1b}[31mred\n")
    expect(story).toContain(remembers ? '\n1 of 2 events is not handled yet' : '\n1 of 1 event is not handled yet')

    const shown = await print(await commandIn(story))
    expect(shown).toMatch(/^state +dead letter$/m)
    expect(shown).toMatch(/^media +'a film'$/m)
    expect(shown).toMatch(/^attempts +2$/m)
    expect(shown).toMatch(/^completed +index$/m)
    expect(shown.match(/^ {2}[12] {2}\d{4}-.* ago\)\n {5}publish: TypeError: no room for it's /gm)).toHaveLength(2)
    expect(shown).toContain(`\n  "title": "it's \\u001b[31mred",\n`)

    fix()
    const replayed = await print(await commandIn(shown))
    expect(replayed).toMatch(/^1 dead letter replayed: /)
    await vi.waitUntil(() => published.length === 1)
    await until(async () => (await receiver.inbox.stats()).running === 0)
    const after = await finish(['inbox', place.target, 'media', 'a film', ...place.flags])
    if (remembers) expect(after).toMatchObject({ code: 0, output: expect.stringMatching(/\n2 events, handled\n$/) })
    else
      expect(after.errors).toMatch(/^no event of the media item 'a film' is known: .*\(this inbox forgets those\)\n$/)
    expect(published).toEqual(['a film'])
  })

  test('finds the unreadable delivery of a media item, and replays it once the version that can parse it is deployed', async () => {
    const place = await makePlace()
    const { receiver, published, fix } = await openShop(place)
    fix()
    expect((await deliver(receiver, future)).status).toBe(400)
    const story = await print(['inbox', place.target, 'media', 'm1', ...place.flags])
    expect(story).toMatch(/^Unreadable deliveries that mention it:\n/)
    const shown = await print(await commandIn(story))
    expect(shown).toMatch(/^reason +field media_id: expected a non-empty string$/m)
    expect(shown).toContain(future)
    await upgraded(async () => {
      await print(await commandIn(shown))
      await vi.waitUntil(() => published.length === 1)
    })
    expect(published).toEqual(['m1'])
  })

  test('is read and changed by each action, also while no server has it open', async () => {
    const place = await makePlace()
    const { receiver, makeDeadLetter, sendUnreadable, inbox } = await serve(place)
    const json = async (...args: string[]) => JSON.parse((await inbox(...args, '--json')).output)
    const keysOf = (records: { key: string }[]) => records.map(({ key }) => key)
    await makeDeadLetter('m1', 'm2', 'm3')
    expect(await json('stats')).toMatchObject({ waiting: 0, retrying: 0, deadLetters: 3 })
    expect(keysOf((await json('dead-letters', '--offset', '1')).deadLetters)).toEqual(['m2', 'm1'])
    expect(keysOf((await json('events', '--state', 'dead', '--oldest')).events)).toEqual(['m1', 'm2', 'm3'])
    const watch = start(['inbox', place.target, 'watch', ...place.flags])
    await watch.line(/dead letters 3$/)
    await sendUnreadable(future.replace('"m1"', '"m4"'))
    await watch.line(/dead letter: .*unreadable/)
    watch.interrupt()
    expect(await json('pause')).toEqual({ changed: true })
    expect((await json('stats')).pauses).toHaveLength(1)
    expect(await json('resume')).toEqual({ changed: true })
    expect(await json('retry', 'm1')).toEqual({ retried: false })
    expect(await json('discard', 'm1', 'no such')).toEqual({ discarded: ['m1'], missing: ['no such'] })
    await receiver.close()
    expect(await json('replay', 'm2', 'm1')).toEqual({ replayed: ['m2'], missing: ['m1'] })
    expect((await json('replay', '--all')).replayed).toEqual(['m3', expect.stringMatching(/^unreadable:/)])
    await upgraded(async () => {
      const { fix, handled } = await serve(place)
      fix()
      await until(async () => handled.length === 3)
      expect(handled.toSorted()).toEqual(['m2', 'm3', 'm4'])
    })
  })
}
