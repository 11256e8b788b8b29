import { execFile } from 'node:child_process'
import { userInfo } from 'node:os'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, test, vi } from 'vitest'
import { run } from '../../src/cli/run.ts'
import { until } from '../support/inbox.ts'
import { signalled } from '../support/signalled.ts'
import { future } from '../support/unreadable.ts'
import { finish, start } from './program.ts'
import { serveFile } from './served-inbox.ts'

/** A pause that no test outlasts, except by a chance of one in a thousand. */
const never = { attempts: 5, baseMs: 3_600_000, maxMs: 3_600_000 }

const red = '\u001b[31mred'
const safeRed = '\\u{1b}[31mred'

/** Runs the program on a terminal, and returns what it writes there. */
function onTerminal(args: readonly string[]) {
  const written = { stdout: '', stderr: '' }
  const stream = (name: keyof typeof written) => ({
    isTTY: true,
    columns: 200,
    write: (text: string) => (written[name] += text),
  })
  const ended = new AbortController()
  const context = { stdout: stream('stdout'), stderr: stream('stderr'), stdin: Readable.from([]) }
  const code = run(args, { ...context, env: { NO_COLOR: '1' }, signal: ended.signal })
  return { written, code, interrupt: () => ended.abort() }
}

const keysIn = (output: string) => JSON.parse(output).events.map(({ key }: { key: string }) => key)

describe('pause and resume', () => {
  test('stop and continue the handling in the server, and stats says who has paused it', async () => {
    const { send, handled, fix, inbox } = await serveFile()
    fix()
    expect((await inbox('stats')).output).not.toContain('paused')
    const { code, output } = await inbox('pause')
    expect([code, output]).toEqual([
      0,
      expect.stringMatching(/^the inbox is paused: .*\nTo resume it: npx media-webhooks inbox .* resume/),
    ])
    expect((await inbox('pause')).output).toMatch(/^the inbox was paused already\n/)
    const [{ since, by }] = JSON.parse((await inbox('stats', '--json')).output).pauses
    expect([Math.abs(Date.parse(since) - Date.now()) < 60_000, by]).toEqual([true, userInfo().username])
    expect((await inbox('stats')).output).toContain(`paused        the inbox since ${since} (`)
    // The server obeys within two seconds.
    await sleep(2_000)
    await send('encoding.finished', { media_id: 'm1' })
    await sleep(100)
    expect(handled).toEqual([])
    expect(await inbox('resume')).toEqual({ code: 0, output: 'the inbox is resumed\n', errors: '' })
    await until(async () => handled.length === 1)
    expect(JSON.parse((await inbox('resume', '--json')).output)).toEqual({ changed: false })
  })

  test('are about one handler with --handler', async () => {
    const { inbox } = await serveFile()
    const refused = await inbox('pause', '--handler', 'a b')
    expect(refused.code).toBe(2)
    expect(refused.errors).toContain('no event names a handler a b: add --yes to pause it anyway')
    const { output } = await inbox('pause', '--handler', 'a b', '--yes')
    expect(output).toMatch(/^the handler a b, although no event names it, is paused: .* resume.* '--handler=a b'\n$/s)
    expect((await inbox('stats')).output).toContain('paused        the handler a b since ')
    expect(JSON.parse((await inbox('resume', '--handler', 'a b', '--json')).output)).toEqual({ changed: true })
    expect((await inbox('resume', '--handler=a b')).output).toBe('the handler a b was not paused\n')
    expect((await inbox('pause', 'publish')).errors).toContain('pause takes no keys')
  })
})

describe('events', () => {
  test('lists events by state, type and media, page by page', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2', 'm3')
    const { code, output, errors } = await inbox('events', '--state', 'dead', '--oldest', '--limit', '2')
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expect(output).toMatch(/^short id +received +state +type +media +attempts +key\n/)
    expect(
      output.match(/ dead letter {2}encoding\.finished {2}m\d +2 +m\d\n {2}publish: Error: no room for /g),
    ).toEqual([expect.stringContaining('m1'), expect.stringContaining('m2')])
    const [, cursor = ''] = /--cursor=(.*)\n$/.exec(output) ?? []
    const { stdout } = await promisify(execFile)('bash', ['-c', `printf %s ${cursor}`])
    const next = await inbox('events', '--state', 'dead', '--oldest', '--limit', '2', '--json', `--cursor=${stdout}`)
    expect(keysIn(next.output)).toEqual(['m3'])
    expect(JSON.parse(next.output).cursor).toBe(undefined)
    expect(keysIn((await inbox('events', '--media', 'm2', '--json')).output)).toEqual(['m2'])
    expect((await inbox('events', '--type', 'encoding.failed')).output).toBe('0 events\n')
  })

  test('prints whole events with --json', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1')
    const { events } = JSON.parse((await inbox('events', '--json')).output)
    const message = 'Error: no room\nfor \u001b[31mit'
    expect(events).toEqual([
      expect.objectContaining({
        key: 'm1',
        state: 'dead',
        mediaId: 'm1',
        attempts: 2,
        failedAttempts: [1, 2].map((number) => ({
          number,
          // The stack is that of the newest failure.
          failures: [
            { handler: 'publish', message, ...(number === 2 && { stack: expect.stringMatching(/^at publish /) }) },
          ],
          failedAt: expect.stringMatching(/^\d{4}-.*Z$/),
        })),
        event: expect.objectContaining({ payload: expect.objectContaining({ media_id: 'm1' }) }),
      }),
    ])
  })

  test('says which states the inbox cannot tell', async () => {
    const { inbox } = await serveFile()
    const { code, errors } = await inbox('events', '--state', 'running')
    expect(code).toBe(1)
    expect(errors).toMatch(
      /^media-webhooks: only the process that handles the events of a file knows which are running/,
    )
    expect(await inbox('events', '--state', 'handled')).toMatchObject({ code: 0 })
    expect(await inbox('events', '--cursor', 'x')).toMatchObject({ code: 2, errors: expect.stringMatching(/cursor/) })
  })
})

describe('show', () => {
  test('escapes what could control a terminal', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter(red)
    const { output } = await inbox('show', red)
    expect(output).not.toContain('\u001b')
    expect(output).toContain(`\nmedia     $'\\033[31mred'\n`)
    expect(output).toContain(`"media_id": "\\u001b[31mred"`)
    const { state, key } = JSON.parse((await inbox('show', red, '--json')).output)
    expect({ state, key }).toEqual({ state: 'dead', key: red })
  })

  test('prints an event that waits for its next attempt, and the command that starts it', async () => {
    const { send, deadLetters, seenRetrying, inbox } = await serveFile(never)
    await send('encoding.finished', { media_id: 'm1' })
    await seenRetrying('m1')
    const { output } = await inbox('show', 'm1')
    expect(output).toMatch(/^state +retrying$/m)
    expect(output).toMatch(/^next attempt +\d{4}-.*Z \(in \d+ (s|min)\)$/m)
    expect(output).toMatch(/\nTo start the next attempt now:\n {2}npx media-webhooks inbox .* retry [0-9a-f]{8}\n$/)
    expect(await deadLetters()).toBe(0)
  })

  test('prints the bytes of an unreadable delivery', async () => {
    const { sendUnreadable, receiver, inbox } = await serveFile()
    await sendUnreadable(new Uint8Array([0x7b, 0xff]))
    const [binary] = await receiver.inbox.deadLetters.list()
    expect((await inbox('show', binary?.key ?? '')).output).toContain(
      '\nbody, 2 bytes that are not UTF-8, in base64:\ne/8=\n',
    )
    const { state, unreadable } = JSON.parse((await inbox('show', binary?.key ?? '', '--json')).output)
    expect({ state, bodyBase64: unreadable.bodyBase64 }).toEqual({ state: 'dead', bodyBase64: 'e/8=' })
    await sendUnreadable(`{\n"title":{"${red}":1}}`)
    const [text] = await receiver.inbox.deadLetters.list()
    expect((await inbox('show', text?.key ?? '')).output).toContain(`:\n{\n"title":{"${safeRed}":1}}\n`)
  })

  test('exits with 1 for a key that no event has, and says what that means', async () => {
    const { inbox } = await serveFile()
    const { code, output, errors } = await inbox('show', red)
    expect({ code, output }).toEqual({ code: 1, output: '' })
    expect(errors).toMatch(
      /^no event has the key \$'\\033\[31mred': its delivery has not arrived or was rejected, its type has no handler, .*\n$/,
    )
  })
})

describe('media', () => {
  test('prints everything with --json, and exits with 1 if there is nothing', async () => {
    const { makeDeadLetter, sendUnreadable, inbox } = await serveFile()
    await makeDeadLetter('m1')
    await sendUnreadable()
    const { code, output } = await inbox('media', 'm1', '--json')
    const { events, unreadable } = JSON.parse(output)
    expect(code).toBe(0)
    expect(events).toEqual([expect.objectContaining({ key: 'm1', state: 'dead' })])
    expect(unreadable).toEqual([expect.objectContaining({ unreadable: expect.objectContaining({ body: future }) })])
    expect(await inbox('media', 'm2', '--json')).toMatchObject({ code: 1, output: '{"events":[],"unreadable":[]}\n' })
  })
})

describe('retry', () => {
  test('starts the next attempt of an event within a second', async () => {
    const { send, fix, handled, seenRetrying, inbox } = await serveFile(never)
    await send('encoding.finished', { media_id: 'm1' })
    await seenRetrying('m1')
    fix()
    const { code, output } = await inbox('retry', 'm1')
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/^the next attempt starts /) })
    await vi.waitUntil(() => handled.length === 1)
    expect(handled).toEqual(['m1'])
  })

  test('exits with 1 if the event does not wait for one, and says why', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1')
    const dead = await inbox('retry', 'm1')
    expect(dead).toMatchObject({ code: 1, output: '' })
    expect(dead.errors).toMatch(
      /: it is a dead letter\na dead letter can be replayed: npx media-webhooks inbox .* replay [0-9a-f]{8}\n$/,
    )
    const unknown = await inbox('retry', 'm2', '--json')
    expect(unknown).toMatchObject({ code: 1, output: '{"retried":false}\n' })
    expect(unknown.errors).toMatch(/^no event with the key m2 waits for its next attempt: its delivery has not arrived/)
  })
})

describe('stop', () => {
  test('exits with 1 if only the process of the handler can end its run, and says so', async () => {
    const { receiver, fix, send, inbox } = await serveFile()
    fix()
    const hasEnded = signalled()
    receiver.onAny(() => hasEnded.promise)
    await send('encoding.finished', { media_id: 'm1' })
    await until(async () => (await receiver.inbox.stats()).running === 1)
    const { code, output, errors } = await inbox('stop', 'm1')
    expect([code, output]).toEqual([1, ''])
    expect(errors).toMatch(/^with SQLite or Redis, only the process that runs a handler can stop it: /)
    hasEnded.resolve()
  })

  test('exits with 1 if there is no such event', async () => {
    const { inbox } = await serveFile()
    const { code, errors } = await inbox('stop', 'm2')
    expect([code, errors]).toEqual([1, expect.stringMatching(/^no event has the key m2: /)])
  })
})

describe('replay --all', () => {
  test('replays only dead letters of a type or a time', async () => {
    const { makeDeadLetter, send, sendUnreadable, deadLetters, fix, handled, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    await send('encoding.failed', { media_id: 'm3' })
    await until(async () => (await deadLetters()) === 3)
    await sendUnreadable()
    fix()
    const replayed = async (...args: string[]) => JSON.parse((await inbox('replay', '--all', '--json', ...args)).output)
    expect(await replayed('--since', '2999-01-01')).toEqual({ replayed: [], missing: [] })
    expect(await replayed('--type', 'encoding.failed', '--since', '1h')).toEqual({ replayed: ['m3'], missing: [] })
    await until(async () => handled.length === 1)
    expect(await replayed('--type', 'encoding.finished')).toEqual({ replayed: ['m1', 'm2'], missing: [] })
    await until(async () => handled.length === 3)
    expect(await deadLetters()).toBe(1)
  })

  test('replays as many in a second as it is told', async () => {
    const { makeDeadLetter, fix, handled, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2', 'm3')
    fix()
    const startedAt = performance.now()
    expect(await inbox('replay', '--all', '--per-second', '2')).toMatchObject({ code: 0 })
    // Two immediately, and the third a second later.
    expect(performance.now() - startedAt).toBeGreaterThan(950)
    await until(async () => handled.length === 3)
  })

  test('shows its progress on a terminal, and clears it at the end', async () => {
    const { makeDeadLetter, path } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    const { written, code } = onTerminal(['inbox', path, 'replay', '--all'])
    expect(await code).toBe(0)
    expect(written.stderr).toBe('2 of 2 replayed\n\u001b[1F\u001b[J')
    expect(written.stdout).toMatch(/^2 dead letters replayed: /)
  })
})

describe('watch', () => {
  test('prints the counts, and then each failure and dead letter when it appears, until it is interrupted', async () => {
    const { makeDeadLetter, path } = await serveFile()
    await makeDeadLetter('before')
    const program = start(['inbox', path, 'watch'])
    expect(await program.line(/waiting 0/)).toMatch(
      /^\d{4}-.*Z {2}waiting 0, (running 0, )?retrying 0, dead letters 1$/,
    )
    await makeDeadLetter(red)
    const line = await program.line(/dead letter: /)
    expect(line).toMatch(/^\d{4}-.*Z {2}dead letter: encoding\.finished, media /)
    expect(line).toContain(`media ${safeRed}, key $'\\033[31mred'`)
    await program.line(/dead letters 2$/)
    program.interrupt()
    expect(await program.code).toBe(0)
    expect(program.output()).not.toContain('before')
    expect(program.output()).not.toContain('\u001b')
  })

  test('prints one JSON object a line with --json', async () => {
    const { send, sendUnreadable, path } = await serveFile(never)
    const program = start(['inbox', path, 'watch', '--json'])
    expect(JSON.parse(await program.line(/counts/)).counts).toMatchObject({ waiting: 0, retrying: 0, deadLetters: 0 })
    await send('encoding.finished', { media_id: 'm1' })
    expect(JSON.parse(await program.line(/failedAttempt"/)).failedAttempt).toMatchObject({
      key: 'm1',
      number: 1,
      failures: [{ handler: 'publish', message: 'Error: no room\nfor \u001b[31mit' }],
    })
    await sendUnreadable()
    expect(JSON.parse(await program.line(/deadLetter"/)).deadLetter.unreadable.body).toBe(future)
  })

  test('draws the counts again and again at the end of a terminal', async () => {
    const { makeDeadLetter, path } = await serveFile()
    const { written, code, interrupt } = onTerminal(['inbox', path, 'watch'])
    await vi.waitUntil(() => written.stdout.includes('Ctrl-C'))
    await makeDeadLetter('m1')
    await vi.waitUntil(() => written.stdout.includes('dead letters 1'))
    interrupt()
    expect(await code).toBe(0)
    const erased = '\u001b[2F\u001b[J'
    expect(written.stdout).toMatch(/^waiting 0, .*dead letters 0\nPress Ctrl-C to stop\.\n/)
    // A line that stays takes the place of the counts, which move below it.
    const stays = /^\d{4}-.* dead letter: .*\n {2}publish: .*\nwaiting 0, .*\nPress Ctrl-C to stop\.\n$/
    const frames = written.stdout.split(erased)
    expect(frames.filter((frame) => stays.test(frame))).toHaveLength(1)
    expect(frames.at(-1)).toBe('')
  })
})

test.each([
  [['show'], /show takes one key/],
  [['show', 'a', 'b'], /show takes one key/],
  [['media'], /media takes one media id/],
  [['retry', 'a', '--all'], /retry does not take --all/],
  [['watch', 'a'], /watch takes no keys/],
  [['expected', 'a'], /expected takes no keys/],
  [['expected', '--oldest'], /expected does not take --oldest/],
  [['events', '--state', 'gone'], /--state takes one of waiting, running, retrying, dead, handled/],
  [['replay', 'a', '--since', '1h'], /--type and --since go with --all/],
  [['replay', '--all', '--since', 'yesterday'], /--since takes a duration such as 15m, 2h or 1d, or a time such as/],
  [['replay', '--all', '--per-second', '0'], /--per-second takes a whole number from 1/],
  [['discard', '--all', '--type', 't'], /add --yes to confirm/],
])('exits with 2 for %j, and says why in one line', async (args, why) => {
  const { code, output, errors } = await finish(['inbox', 'a.db', ...args])
  expect({ code, output }).toEqual({ code: 2, output: '' })
  expect(errors).toMatch(why)
  expect(errors).toMatch(/^media-webhooks: [^\n]+\n$/)
})
