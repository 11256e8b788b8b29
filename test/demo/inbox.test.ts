import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openInboxFile } from '../../src/inbox/sqlite.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { serve } from '../support/serve.ts'
import { run, start } from './program.ts'

// Each test starts Node and the TypeScript loader, which takes seconds on a busy machine.

const verdict = 'Every event was handled exactly once, and every bad delivery was rejected.'

/** Returns `encoding.finished 7c9e6679` for each event in the lines of this kind. */
const eventsIn = (lines: readonly string[], kind: RegExp) =>
  lines.filter((line) => kind.test(line)).map((line) => /[a-z]+\.[a-z]+ +[\da-f]{8}/.exec(line)?.[0])
const accepted = / delivery {2}accepted /
const handled = / handling {2}handled /

describe('npm start -- --inbox sqlite', () => {
  test('plays the same scenario with a temporary file, which it names and removes', async () => {
    const { status, stderr, stdout, lines } = await run(['--inbox', 'sqlite', '--exit'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain(verdict)
    expect(lines.find((line) => line.startsWith('all '))).toMatch(/^all +45 +68 +15 +53 +12 +45$/)
    const [, path = ''] = /^Inbox +(.+)$/m.exec(stdout) ?? []
    expect(path).toMatch(/inbox\.db$/)
    expect(existsSync(dirname(path))).toBe(false)
  })

  test('keeps a given file, with nothing left to handle', async () => {
    const path = await freshPath()
    expect((await run(['--inbox', 'sqlite', '--inbox-file', path, '--exit'])).status).toBe(0)
    const file = openInboxFile(path)
    // Unreadable deliveries: four were corrupted in transit, one was cut off.
    expect(file.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 5 })
    file.close()
  })

  test('first handles the events that a killed run had accepted', async () => {
    const path = await freshPath()
    const args = ['--inbox', 'sqlite', '--inbox-file', path, '--exit']
    const child = start(args)
    const ended = once(child, 'close')
    const before: string[] = []
    for await (const line of createInterface({ input: child.stdout })) {
      before.push(line)
      if (accepted.test(line)) child.kill('SIGKILL')
    }
    expect(await ended).toEqual([null, 'SIGKILL'])

    const { status, stdout, lines } = await run(args)
    expect(status).toBe(0)
    expect(stdout).toContain(verdict)
    const done = eventsIn([...before, ...lines], handled)
    expect(done).toEqual(expect.arrayContaining(eventsIn(before, accepted)))
  })

  test.each(['--port', '--emulator-port'])('leaves no temporary folder when %s is taken', async (flag) => {
    const { port } = new URL(await serve(() => {}))
    const folder = dirname(await freshPath())
    const { status, stderr } = await run(['--inbox', 'sqlite', flag, port, '--exit'], { TMPDIR: folder })
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/^port \d+ is taken: [^\n]+\n$/) })
    expect((await readdir(folder)).filter((name) => name.startsWith('media-webhooks-'))).toEqual([])
  })

  test('exits with status 1 and one line with the reason when the file cannot be used', async () => {
    const path = dirname(await freshPath())
    const { status, stderr } = await run(['--inbox', 'sqlite', '--inbox-file', path, '--exit'])
    expect(status).toBe(1)
    expect(stderr).toMatch(/^the inbox file [^\n]+ cannot be used: [^\n]+\n$/)
  })
})

describe.skipIf(!findPostgres())('npm start -- --inbox postgres', () => {
  test('plays the same scenario in a schema of its own, also a second time', async () => {
    const server = await PostgresServer.start()
    onTestFinished(() => server.remove())
    for (let time = 1; time <= 2; time++) {
      const { status, stdout } = await run(['--inbox', 'postgres', '--inbox-url', server.url, '--exit'])
      expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining(verdict) })
      expect(stdout).toMatch(/^Inbox +Postgres, schema media_webhooks_demo$/m)
    }
  })

  test('exits with status 1 and the reason if the database cannot be reached', async () => {
    const args = ['--inbox', 'postgres', '--inbox-url', 'postgres://127.0.0.1:1/app', '--exit']
    expect(await run(args)).toMatchObject({ status: 1, stderr: expect.stringContaining('ECONNREFUSED 127.0.0.1:1') })
  })
})
