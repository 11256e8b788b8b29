import { Readable } from 'node:stream'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createReceiver, type InboxDefinition, type MediaEvent, type RetryOptions, urlToken } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { future, upgraded } from '../inbox/unreadable.suite.ts'
import { until } from '../support/inbox.ts'
import { silent } from '../support/silent.ts'
import { finish, start } from './program.ts'

/** An inbox of its own on a server. */
export interface InboxPlace {
  /** The URL of the server. */
  readonly url: string
  /** The flags that name the inbox on it. */
  readonly flags: readonly string[]
  readonly inbox: () => InboxDefinition
}

const secret = 'url-token-4b81'
const url = `/webhooks/media?token=${secret}`
const payload = (mediaId: string) => JSON.stringify(samplePayload('encoding.finished', { media_id: mediaId }))

const twice: RetryOptions = { attempts: 2, baseMs: 1 }

/** Starts a receiver whose only handler fails until `fix()` is called. The key of an event is its media id. */
export async function serve({ url: target, flags, inbox: definition }: InboxPlace, retry: RetryOptions = twice) {
  const receiver = createReceiver({
    verify: urlToken({ secret }),
    inbox: definition(),
    logger: silent,
    eventKey: ({ mediaId }) => mediaId,
    retry,
  })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
  let isFixed = false
  const handled: string[] = []
  const publish = ({ mediaId }: MediaEvent) => {
    if (!isFixed) throw new Error('no room\nfor \u001b[31mit')
    handled.push(mediaId)
  }
  receiver.onAny(publish, { name: 'publish' })
  await receiver.ready()
  const deadLetters = async () => (await receiver.inbox.stats()).deadLetters
  const inbox = (...args: string[]) => finish(['inbox', target, ...args, ...flags])
  return {
    receiver,
    handled,
    deadLetters,
    fix() {
      isFixed = true
    },
    /** Sends events one by one, and waits until each is a dead letter. */
    async makeDeadLetter(...keys: string[]) {
      for (const key of keys) {
        const before = await deadLetters()
        expect(await deliver(receiver, payload(key), { url })).toMatchObject({ status: 200 })
        await until(async () => (await deadLetters()) === before + 1)
      }
    },
    /** Sends all events together, and waits until all are dead letters. */
    async buryMany(keys: readonly string[]) {
      await Promise.all(keys.map((key) => deliver(receiver, payload(key), { url })))
      await vi.waitUntil(async () => (await deadLetters()) === keys.length)
    },
    /** Sends an event. */
    send: (type: Parameters<typeof samplePayload>[0], fields: Parameters<typeof samplePayload>[1]) =>
      deliver(receiver, samplePayload(type, fields), { url }),
    /** Sends a delivery that this version cannot parse. */
    sendUnreadable: (body: string | Uint8Array<ArrayBuffer> = future) => deliver(receiver, body, { url }),
    /** Waits until the command sees that an event waits for its next attempt: the receiver knows it a moment earlier. */
    async seenRetrying(key: string) {
      await until(async () => {
        const { code, output } = await inbox('show', key, '--json')
        return code === 0 && JSON.parse(output).state === 'retrying'
      })
    },
    inbox,
  }
}

/** Waits until a condition is true, which has to be within a second. */
async function withinASecond(condition: () => boolean | Promise<boolean>) {
  await vi.waitUntil(condition, { interval: 5 })
}

/** Tests what the command does with every inbox on a server. */
export function checkInboxCommand(makePlace: () => Promise<InboxPlace>): void {
  const served = async () => serve(await makePlace())

  test('stats prints the counts as text and as JSON', async () => {
    const { makeDeadLetter, inbox } = await served()
    await makeDeadLetter('m1', 'm2')
    const people = 'waiting       0\nrunning       0\nretrying      0\ndead letters  2\n'
    expect(await inbox('stats')).toEqual({ code: 0, output: people, errors: '' })
    const { output } = await inbox('stats', '--json')
    expect(JSON.parse(output)).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 2 })
  })

  test('dead-letters lists a page, newest first, with the errors of the handlers', async () => {
    const { makeDeadLetter, inbox } = await served()
    await makeDeadLetter('m1', 'm2 \u001b[31m', 'm3')
    const { code, output, errors } = await inbox('dead-letters')
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expect(
      output.match(/ {2}(m3|m1|\$'m2 \\033\[31m')\n {2}publish: Error: no room for \\u\{1b\}\[31mit\n/g),
    ).toHaveLength(3)
    expect(output.indexOf('m3')).toBeLessThan(output.indexOf('m1'))
    const page = await inbox('dead-letters', '--limit', '1', '--offset', '2')
    expect(page.output).toMatch(/ {2}m1\n.*\n1 of 3 dead letters\n$/)
  })

  test('dead-letters keeps the order beyond the tenth', async () => {
    const { makeDeadLetter, inbox } = await served()
    const keys = Array.from({ length: 12 }, (_, i) => `m${i}`)
    await makeDeadLetter(...keys)
    const { deadLetters } = JSON.parse((await inbox('dead-letters', '--json')).output)
    expect(deadLetters.map(({ key }: { key: string }) => key)).toEqual(keys.toReversed())
  })

  test('dead-letters prints everything with --json, and no secret of a URL', async () => {
    const { makeDeadLetter, sendUnreadable, inbox } = await served()
    await makeDeadLetter('m1')
    expect((await sendUnreadable()).status).toBe(400)
    expect((await sendUnreadable(new Uint8Array([0x7b, 0xff]))).status).toBe(400)
    const { output } = await inbox('dead-letters', '--json')
    const { deadLetters, total } = JSON.parse(output)
    expect(total).toBe(3)
    const bodies = deadLetters.map(({ unreadable }: { unreadable?: object }) => unreadable)
    expect(bodies).toContainEqual(
      expect.objectContaining({ reason: 'field media_id: expected a non-empty string', body: future }),
    )
    expect(bodies).toContainEqual(expect.objectContaining({ bodyBase64: Buffer.from([0x7b, 0xff]).toString('base64') }))
    expect(deadLetters).toContainEqual(
      expect.objectContaining({
        key: 'm1',
        attempts: 2,
        failures: [{ handler: 'publish', message: 'Error: no room\nfor \u001b[31mit' }],
      }),
    )
    expect(output).not.toContain(secret)
  })

  test('replay makes a running receiver handle the given events within a second', async () => {
    const { makeDeadLetter, fix, handled, inbox } = await served()
    await makeDeadLetter('m1', 'm2', 'm3')
    fix()
    const { code, output, errors } = await inbox('replay', 'm1', 'no such', 'm3', 'm1')
    expect({ code, errors }).toEqual({ code: 1, errors: "no dead letter has the key 'no such'\n" })
    expect(output).toMatch(/^2 dead letters replayed: handled within a second if a server/)
    await withinASecond(() => handled.length === 2)
    expect(handled.toSorted()).toEqual(['m1', 'm3'])
    expect((await inbox('stats')).output).toMatch(/^dead letters {2}1$/m)
  })

  test('replay reads events with characters that a database has no text for', async () => {
    const { receiver, deadLetters, fix, handled, inbox } = await served()
    const odd = samplePayload('encoding.finished', { media_id: 'm1', title: 'a\0b\ud800c' })
    await deliver(receiver, JSON.stringify(odd), { url })
    await until(async () => (await deadLetters()) === 1)
    fix()
    expect(await inbox('replay', 'm1')).toMatchObject({ code: 0 })
    await withinASecond(() => handled.length === 1)
  })

  test('replay --all replays every dead letter once', async () => {
    const { buryMany, deadLetters, fix, handled, inbox } = await served()
    const keys = Array.from({ length: 1_234 }, (_, i) => `m${i}`)
    await buryMany(keys)
    fix()
    const { code, output } = await inbox('replay', '--all', '--json')
    const { replayed, missing } = JSON.parse(output)
    expect({ code, missing }).toEqual({ code: 0, missing: [] })
    expect(replayed.toSorted()).toEqual(keys.toSorted())
    await vi.waitUntil(() => handled.length === keys.length)
    expect(handled.toSorted()).toEqual(keys.toSorted())
    expect(await deadLetters()).toBe(0)
    expect((await inbox('replay', '--all')).output).toBe('0 dead letters replayed\n')
  })

  test('replay --all misses none although others vanish in the meantime, and that is not an error', async () => {
    const { buryMany, receiver, deadLetters, fix, handled, inbox } = await served()
    const keys = Array.from({ length: 400 }, (_, i) => `m${i}`)
    await buryMany(keys)
    fix()
    const other = async () => {
      for (const key of keys.slice(0, 100)) await receiver.inbox.deadLetters.replay(key)
    }
    const [{ code }] = await Promise.all([inbox('replay', '--all'), other()])
    expect(code).toBe(0)
    await vi.waitUntil(() => handled.length === keys.length)
    expect(handled.toSorted()).toEqual(keys.toSorted())
    expect(await deadLetters()).toBe(0)
  })

  test('replay makes a running receiver parse an unreadable delivery, which stays if it still cannot', async () => {
    const { sendUnreadable, deadLetters, fix, handled, inbox } = await served()
    await sendUnreadable()
    fix()
    expect(await inbox('replay', '--all')).toMatchObject({ code: 0 })
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await deadLetters()).toBe(1)
    await upgraded(async () => {
      expect((await inbox('replay', '--all')).output).toMatch(/^1 dead letter replayed: /)
      await withinASecond(() => handled.length === 1)
    })
    expect(handled).toEqual(['m1'])
    await until(async () => (await deadLetters()) === 0)
  })

  test('a receiver that starts later handles what was replayed', async () => {
    const place = await makePlace()
    const first = await serve(place)
    await first.makeDeadLetter('m1')
    await first.sendUnreadable(future.replace('"m1"', '"m2"'))
    await first.receiver.close()
    expect(await first.inbox('replay', '--all')).toMatchObject({ code: 0 })
    await upgraded(async () => {
      const { fix, handled } = await serve(place)
      fix()
      await until(async () => handled.length === 2)
      expect(handled.toSorted()).toEqual(['m1', 'm2'])
    })
  })

  test('discard deletes the given dead letters, and all of them only after a confirmation', async () => {
    const { makeDeadLetter, sendUnreadable, deadLetters, inbox } = await served()
    await makeDeadLetter('m1', 'm2', '-m3')
    await sendUnreadable()
    expect(await inbox('discard', 'm1')).toEqual({ code: 0, output: '1 dead letter discarded\n', errors: '' })
    expect(await inbox('discard', 'm1', '--json')).toMatchObject({
      code: 1,
      output: '{"discarded":[],"missing":["m1"]}\n',
    })
    expect(await inbox('discard', '--all')).toMatchObject({ code: 2, errors: expect.stringMatching(/add --yes/) })
    expect(await deadLetters()).toBe(3)
    expect((await inbox('discard', '--all', '--yes')).output).toBe('3 dead letters discarded\n')
    expect(await deadLetters()).toBe(0)
  })

  test('reads the URL from standard input for a dash', async () => {
    const place = await makePlace()
    const { makeDeadLetter } = await serve(place)
    await makeDeadLetter('m1')
    const { url: target, flags } = place
    const stdin = Readable.from([`${target}\n`])
    const { code, output } = await finish(['inbox', '-', 'stats', '--json', ...flags], {}, stdin)
    expect({ code, output: JSON.parse(output) }).toMatchObject({ code: 0, output: { deadLetters: 1 } })
  })

  test('can be interrupted between two batches', async () => {
    const place = await makePlace()
    const { makeDeadLetter } = await serve(place)
    await makeDeadLetter('m1', 'm2')
    const program = start(['inbox', place.url, 'discard', '--all', '--yes', ...place.flags])
    program.interrupt()
    expect(await program.code).toBe(130)
    expect(program.errors()).toBe('interrupted: 0 of 2 discarded so far\n')
  })
}

/** Expects that the command fails with one line that matches, and prints no part of the secret. */
export async function expectFailure(args: readonly string[], why: RegExp, kept = 'no secret', code = 1) {
  const result = await finish(['inbox', ...args])
  expect(result).toMatchObject({ code, output: '' })
  expect(result.errors).toMatch(why)
  expect(result.errors).toMatch(/^media-webhooks: [^\n]+\n$/)
  expect(result.errors).not.toContain(kept)
}

/** Tests the command lines that no inbox on a server takes. */
export function checkUsage(url: string, foreign: readonly string[]): void {
  describe.each([
    [['stats', 'm1'], /stats takes no keys/],
    [['stats', '--all'], /stats does not take --all/],
    [['dead-leters'], /did you mean 'dead-letters'\?/],
    [['dead-letters', '--limit', '0'], /--limit takes a whole number from 1/],
    [['replay'], /replay takes either keys or --all/],
    [['replay', 'm1', '--print'], /replay does not take --print/],
    [['stats', ...foreign], /is for (Postgres|Redis) only/],
  ])('%j', (args, why) => {
    test('exits with 2, and says why in one line', () => expectFailure([url, ...args], why, 'no secret', 2))
  })
}
