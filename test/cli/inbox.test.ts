import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/inbox/sqlite/driver.ts'
import { openInboxFile, sqliteInbox } from '../../src/inbox/sqlite.ts'
import { unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { freshPath, receiverOver } from '../inbox/sqlite/sqlite-tests.ts'
import { until } from '../support/inbox.ts'
import { future } from '../support/unreadable.ts'
import { checkTarget } from './inbox-target.suite.ts'
import { finish, start } from './program.ts'
import { secret, serveFile } from './served-inbox.ts'

const run = promisify(execFile)

describe('inbox of SQLite', () => {
  checkTarget(async () => {
    const path = await freshPath()
    return { target: path, flags: [], inbox: () => sqliteInbox({ path }) }
  }, true)
})

describe('inbox stats', () => {
  test('prints the counts as text and as JSON', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    const people = 'waiting       0\nretrying      0\ndead letters  2\n'
    expect(await inbox('stats')).toEqual({ code: 0, output: people, errors: '' })
    const { output } = await inbox('stats', '--json')
    expect(JSON.parse(output)).toEqual({ waiting: 0, retrying: 0, deadLetters: 2 })
  })
})

describe('inbox stats of a file whose events wait', () => {
  test('says how long the oldest has waited', async () => {
    const path = await freshPath()
    const receiver = receiverOver({ path }, { verify: unverified(), eventKey: ({ mediaId }) => mediaId })
    let end = () => {}
    const held = new Promise<void>((resolve) => {
      end = resolve
    })
    receiver.onAny(() => held)
    await deliver(receiver, samplePayload('encoding.finished', { media_id: 'm1' }))
    await until(async () => (await receiver.inbox.stats()).running === 1)
    const { output } = await finish(['inbox', path, 'stats'])
    expect(output).toMatch(/^waiting +1\nretrying +0\ndead letters +0\noldest waits +\d s\n$/)
    const json = JSON.parse((await finish(['inbox', path, 'stats', '--json'])).output)
    expect(json).toMatchObject({ waiting: 1, oldestWaitingAt: expect.stringMatching(/^\d{4}-.*Z$/) })
    expect(Math.abs(Date.parse(json.oldestWaitingAt) + json.oldestWaitingMs - Date.now())).toBeLessThan(10_000)
    end()
  })
})

describe('inbox dead-letters', () => {
  test('lists dead letters with the errors of their handlers, and escapes control characters', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2 \u001b[31m')
    const { code, output, errors } = await inbox('dead-letters')
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    const [header, ...lines] = output.split('\n')
    expect(header).toMatch(/^short id +died +type +media +attempts +key$/)
    const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
    expect(lines[0]).toMatch(
      new RegExp(String.raw`^[0-9a-f]{8}  ${time}  encoding\.finished  m2 \\u\{1b\}\[31m  2 +\$'m2 \\033\[31m'$`),
    )
    expect(lines[1]).toBe('  publish: Error: no room for \\u{1b}[31mit')
    expect(lines[2]).toMatch(new RegExp(`^[0-9a-f]{8}  ${time}  encoding\\.finished  m1 +2 +m1$`))
    expect(lines.slice(4)).toEqual(['2 of 2 dead letters', ''])
  })

  test('lists one page, newest first', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2', 'm3')
    const { output } = await inbox('dead-letters', '--limit', '1', '--offset', '1')
    expect(output).toContain('  m2\n')
    expect(output).not.toMatch(/m1|m3/)
    expect(output).toMatch(/\n1 of 3 dead letters\n$/)
    expect((await inbox('dead-letters', '--offset', '3')).output).toBe('0 of 3 dead letters\n')
  })

  test('lists unreadable deliveries with the reason, and with --json also the body', async () => {
    const { sendUnreadable, inbox } = await serveFile()
    expect((await sendUnreadable()).status).toBe(400)
    expect((await sendUnreadable(new Uint8Array([0x7b, 0xff]))).status).toBe(400)
    const { output } = await inbox('dead-letters')
    expect(output).toMatch(
      / \(unreadable\) {2}- +0 +unreadable:[\w-]+\n {2}could not be parsed: field media_id: expected a non-empty string\n/,
    )

    const { deadLetters, total } = JSON.parse((await inbox('dead-letters', '--json')).output)
    expect(total).toBe(2)
    expect(deadLetters[0].unreadable).toMatchObject({ bodyBase64: Buffer.from([0x7b, 0xff]).toString('base64') })
    expect(deadLetters[1].unreadable).toMatchObject({
      reason: 'field media_id: expected a non-empty string',
      body: future,
    })
    expect(JSON.stringify(deadLetters)).not.toContain(secret)
  })

  test('prints everything about an event with --json', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1')
    const { deadLetters } = JSON.parse((await inbox('dead-letters', '--json')).output)
    expect(deadLetters).toMatchObject([
      {
        key: 'm1',
        attempts: 2,
        failures: [{ handler: 'publish', message: 'Error: no room\nfor \u001b[31mit' }],
        event: { type: 'encoding.finished', payload: samplePayload('encoding.finished', { media_id: 'm1' }) },
      },
    ])
  })

  test.each([
    ['two words'],
    ['["encoding.finished","m1","it\'s","$HOME `id` \\"!"]'],
    ["\u001b[31m'\\ \u200b7 ü\n"],
    ['~'],
    ['*?'],
  ])('prints the key %j so that a shell passes it on unchanged', async (key) => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter(key)
    const [, argument] = /attempts +key\n.* 2 {9}(.*)\n/.exec((await inbox('dead-letters')).output) ?? []
    const { stdout } = await run('bash', ['-c', `printf '%s.' ${argument}`])
    expect(stdout).toBe(`${key}.`)
  })
})

describe('inbox replay', () => {
  test('makes a running server handle an event once more, from another process', async () => {
    const { path, makeDeadLetter, fix, handled, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    fix()
    const args = ['--import', 'tsx', 'src/cli/main.ts', 'inbox', path, 'replay', 'm1']
    const { stdout } = await run(process.execPath, args, { cwd: new URL('../../', import.meta.url) })
    expect(stdout).toMatch(/^1 dead letter replayed: handled within a second if a server/)
    await until(async () => handled.length === 1)
    // Any other change of the file makes the server look for replayed events again.
    await inbox('replay', 'm2')
    await until(async () => handled.length === 2)
    expect(handled).toEqual(['m1', 'm2'])
    const nothingLeft = '{"waiting":0,"retrying":0,"deadLetters":0}\n'
    await until(async () => (await inbox('stats', '--json')).output === nothingLeft)
    expect(handled).toHaveLength(2)
  })

  test('--all replays the events in the order in which they died', async () => {
    const { makeDeadLetter, fix, handled, inbox } = await serveFile()
    await makeDeadLetter('m3', 'm1', 'm2')
    fix()
    const { code, output } = await inbox('replay', '--all', '--json')
    expect({ code, output: JSON.parse(output) }).toEqual({
      code: 0,
      output: { replayed: ['m3', 'm1', 'm2'], missing: [] },
    })
    await until(async () => handled.length === 3)
    // The order of media items among each other is nobody's.
    expect(handled.toSorted()).toEqual(['m1', 'm2', 'm3'])
    expect(await inbox('replay', '--all')).toEqual({ code: 0, output: '0 dead letters replayed\n', errors: '' })
  })

  test('--all says what became of the events, as far as is known', async () => {
    const { makeDeadLetter, fix, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    expect((await inbox('replay', '--all')).output).toMatch(/\nSo far 0 handled, 2 failed again, 0 open\.\n$/)
    fix()
    expect((await inbox('replay', '--all')).output).toMatch(/\nSo far 2 handled, 0 failed again, 0 open\.\n$/)
  })

  test('--all misses none although others vanish in the meantime, and that is not an error', async () => {
    const { buryMany, receiver, deadLetters, fix, handled, inbox } = await serveFile()
    const keys = Array.from({ length: 400 }, (_, i) => `m${i}`)
    await buryMany(keys)
    fix()
    const other = async () => {
      for (const key of keys.slice(0, 100)) await receiver.inbox.deadLetters.replay(key)
    }
    const [{ code }] = await Promise.all([inbox('replay', '--all'), other()])
    expect(code).toBe(0)
    await until(async () => handled.length === keys.length)
    expect(handled.toSorted()).toEqual(keys.toSorted())
    expect(await deadLetters()).toBe(0)
  })

  test('--all finds every page of dead letters, for discard too', async () => {
    const { buryMany, inbox } = await serveFile()
    const keys = Array.from({ length: 101 }, (_, i) => `m${i}`)
    await buryMany(keys)
    const { discarded, missing } = JSON.parse((await inbox('discard', '--all', '--yes', '--json')).output)
    expect([discarded.toSorted(), missing]).toEqual([keys.toSorted(), []])
  })

  test('exits with 1 if a key does not exist, and replays the others', async () => {
    const { makeDeadLetter, fix, handled, inbox } = await serveFile()
    await makeDeadLetter('m1')
    fix()
    const { code, output, errors } = await inbox('replay', 'm1', 'no such', 'm1')
    expect({ code, errors }).toEqual({ code: 1, errors: "no dead letter has the key 'no such'\n" })
    expect(output).toMatch(/^1 dead letter replayed: /)
    await until(async () => handled.length === 1)
  })
})

describe('inbox discard', () => {
  test('deletes the given dead letters', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    expect(await inbox('discard', 'm1')).toEqual({ code: 0, output: '1 dead letter discarded\n', errors: '' })
    expect((await inbox('discard', 'm1', '--json')).output).toBe('{"discarded":[],"missing":["m1"]}\n')
    expect((await inbox('stats')).output).toMatch(/^dead letters {2}1$/m)
  })

  test('--all needs a confirmation', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    const { code, errors } = await inbox('discard', '--all')
    expect({ code, errors }).toEqual({ code: 2, errors: expect.stringMatching(/add --yes/) })
    expect((await inbox('discard', '--all', '--yes')).output).toBe('2 dead letters discarded\n')
  })

  test('accepts a key that begins with a dash after --', async () => {
    const { makeDeadLetter, inbox } = await serveFile()
    await makeDeadLetter('-m1')
    expect((await inbox('discard', '--', '-m1')).output).toBe('1 dead letter discarded\n')
  })
})

describe('inbox', () => {
  test.each([
    [[], /<target> is missing/],
    [['a.db'], /the word after the target must be one of stats, media, show, events, dead-letters, /],
    [['a.db', 'dead-leters'], /the word after the target must be one of stats, .*; did you mean 'dead-letters'\?/],
    [['a.db', 'constructor'], /the word after the target must be one of/],
    [['a.db', 'stats', 'm1'], /stats takes no keys/],
    [['a.db', 'stats', '--all'], /stats does not take --all/],
    [['a.db', 'replay', 'm1', '--limit', '1'], /replay does not take --limit/],
    [['postgres://127.0.0.1', 'replay', 'm1', '--print'], /replay does not take --print/],
    [['postgres://127.0.0.1', 'stats', '--queue', 'q'], /--queue is for Redis only/],
    [['redis://127.0.0.1', 'stats', '--schema', 's'], /--schema is for Postgres only/],
    [['a.db', 'replay'], /replay takes either keys or --all/],
    [['a.db', 'discard', 'm1', '--all', '--yes'], /discard takes either keys or --all/],
    [['a.db', 'dead-letters', '--limit', '0'], /--limit takes a whole number from 1/],
  ])('exits with 2 for %j, and says why in one line', async (args, message) => {
    const { code, output, errors } = await finish(['inbox', ...args])
    expect({ code, output }).toEqual({ code: 2, output: '' })
    expect(errors).toMatch(message)
    expect(errors).toMatch(/^media-webhooks: [^\n]+\n$/)
  })

  const files: [string, (path: string) => unknown, RegExp][] = [
    ['it is empty', (path) => writeFile(path, ''), /cannot be used/],
    ['it is not a database', (path) => writeFile(path, 'some other content '.repeat(50)), /not a database/],
    ['it is the database of another program', (path) => make(path, 'CREATE TABLE mine (a)'), /cannot be used/],
    [
      'a newer version made it',
      (path) => make(path, 'CREATE TABLE inbox_schema (version); INSERT INTO inbox_schema VALUES (99)'),
      /a newer version of media-webhooks made it/,
    ],
  ]
  test.each(files)(
    'says in one line that the file cannot be used if %s, and leaves it unchanged',
    async (_, make, why) => {
      const path = await freshPath()
      await make(path)
      const before = await readFile(path)
      await expectUnusable(path, why)
      expect(await readFile(path)).toEqual(before)
    },
  )

  test('says in one line that the file does not exist, and creates none', async () => {
    const path = await freshPath()
    await expectUnusable(path, /there is no inbox file/)
    expect(existsSync(path)).toBe(false)
  })

  async function expectUnusable(path: string, why: RegExp) {
    const { code, output, errors } = await finish(['inbox', path, 'stats'])
    expect({ code, output }).toEqual({ code: 1, output: '' })
    expect(errors).toMatch(why)
    expect(errors).toMatch(/^media-webhooks: [^\n]+inbox\.db[^\n]*\n$/)
  }

  test('reads the target from standard input for a dash', async () => {
    const { path, makeDeadLetter } = await serveFile()
    await makeDeadLetter('m1')
    const { code, output } = await finish(['inbox', '-', 'stats', '--json'], {}, Readable.from([`${path}\n`]))
    expect({ code, output: JSON.parse(output) }).toMatchObject({ code: 0, output: { deadLetters: 1 } })
  })

  test('can be interrupted between two dead letters', async () => {
    const { path, makeDeadLetter } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    const program = start(['inbox', path, 'discard', '--all', '--yes'])
    program.interrupt()
    expect(await program.code).toBe(130)
    expect(program.errors()).toBe('interrupted: 0 of 2 discarded so far\n')
  })

  test('records what it did before it was interrupted, for the page that shows who did what', async () => {
    const { path, makeDeadLetter } = await serveFile()
    await makeDeadLetter('m1', 'm2')
    const file = openInboxFile(path)
    onTestFinished(() => file.close())
    const program = start(['inbox', path, 'replay', '--all', '--per-second=1', '--reason=fixed'])
    await until(async () => file.stats().deadLetters === 1)
    program.interrupt()
    expect(await program.code).toBe(130)
    expect(program.errors()).toBe('interrupted: 1 of 2 replayed so far\n')
    expect(await file.operations.list()).toMatchObject([{ act: 'replay', count: 1, reason: 'fixed' }])
  })
})

function make(path: string, sql: string) {
  const database = openDatabase(path)
  database.exec(sql)
  database.close()
}
