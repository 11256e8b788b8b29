import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { describeInBrowser, openPage } from '../support/browser.ts'
import { listenUntilEnd } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { run, start } from './program.ts'

// Each test starts Node and the TypeScript loader, which takes seconds on a busy machine.

describe('npm start -- --exit', () => {
  test('keeps its status when the reader of its output disconnects after a line', async () => {
    const child = start(['--exit'])
    let errors = ''
    child.stderr.on('data', (chunk) => (errors += chunk))
    const ended = once(child, 'close')
    child.stdout.once('data', () => child.stdout.destroy())
    expect([...(await ended), errors]).toEqual([0, null, ''])
  })

  test('prints no secret, and no colours unless it writes to a terminal', async () => {
    const { stdout } = await run(['--exit'], { WEBHOOK_TOKEN: 'a-plain-secret' })
    expect(stdout).toContain('Every event was handled exactly once')
    expect(stdout).not.toContain('a-plain-secret')
    expect(stdout).not.toContain('\u001b[')
  })
})

/** Returns a function that waits for the next line of the program's output that matches. */
function linesOf({ stdout }: ReturnType<typeof start>) {
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  return async (pattern: RegExp) => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error(`the output ended before ${pattern}`)
      if (pattern.test(value)) return value as string
    }
  }
}

describeInBrowser('the dashboard of npm start', () => {
  test('shows a dead letter with its cause, and replays it', async () => {
    const child = start([])
    const nextMatching = linesOf(child)
    const [, url = ''] = (await nextMatching(/^Dashboard /)).match(/(http:\S+)/) ?? []
    await nextMatching(/^Still running/)
    const page = await openPage({ url })
    const cause = page.locator('.causes > li').filter({ hasText: 'the CMS answered' })
    expect(await cause.textContent()).toContain('publishInCms')
    await cause.getByRole('button', { name: /^Replay/ }).click()
    await nextMatching(/handling {2}handled .* published in the CMS$/)
    await page.getByRole('link', { name: 'Overview' }).click()
    await cause.waitFor({ state: 'detached' })
  })
})

describe('npm start', () => {
  test('keeps the receiver and the emulator running, and closes cleanly on SIGINT', async () => {
    const child = start([])
    const nextMatching = linesOf(child)
    const [, page = ''] = (await nextMatching(/^Emulator /)).match(/(http:\S+)/) ?? []
    const curl = await nextMatching(/^curl /)
    expect(await (await fetch(page)).text()).toContain('Shuffle.mp4')
    await promisify(execFile)('/bin/sh', ['-c', `${curl} --silent --fail`])
    await nextMatching(/delivery {2}accepted .* file\.received /)
    await nextMatching(/handling {2}handled .* added Try me.mp4 to the catalogue$/)
    await nextMatching(/handling {2}handled .* published in 360p, 720p$/)

    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  test('ends, and removes its temporary folder, when the reader of its output disconnects', async () => {
    const folder = await temporaryFolder()
    const child = start(['--inbox', 'sqlite'], { TMPDIR: folder })
    let errors = ''
    child.stderr.on('data', (chunk) => (errors += chunk))
    const ended = once(child, 'close')
    child.stdout.once('data', () => child.stdout.destroy())
    expect([...(await ended), errors]).toEqual([0, null, ''])
    expect((await readdir(folder)).filter((name) => name.startsWith('media-webhooks-'))).toEqual([])
  })

  test('closes cleanly on SIGINT in the middle of a scene', async () => {
    const child = start([])
    let errors = ''
    child.stderr.on('data', (chunk) => (errors += chunk))
    const ended = once(child, 'close')
    for await (const line of createInterface({ input: child.stdout })) {
      if (child.killed || !/delivery {2}accepted/.test(line)) continue
      // More than one, as npm passes on what the terminal also sends.
      const presses = setInterval(() => child.kill('SIGINT'), 10)
      ended.finally(() => clearInterval(presses))
      child.kill('SIGINT')
    }
    expect([...(await ended), errors]).toEqual([0, null, ''])
  })

  test('listens on the given port, and says so when it is in use', async () => {
    const taken = await listenUntilEnd(() => {})
    const { port } = new URL(taken.origin)

    const receiver = await run(['--port', port, '--exit'])
    expect(receiver.status).toBe(1)
    expect(receiver.stderr).toBe(`port ${port} is taken: pass another --port, or --port 0 for a free one\n`)
    const emulator = await run(['--emulator-port', port, '--exit'])
    expect(emulator.status).toBe(1)
    expect(emulator.stderr).toBe(
      `port ${port} is taken: pass another --emulator-port, or --emulator-port 0 for a free one\n`,
    )

    await taken.close()
    const { status, lines } = await run(['--port', port, '--exit'])
    expect(lines[0]).toBe(`Receiver   http://127.0.0.1:${port}/webhooks/media`)
    expect(status).toBe(0)
  })

  test('exits with status 2, the reason and the usage for an unknown flag', async () => {
    const { status, stderr } = await run(['--exti'])
    expect(status).toBe(2)
    expect(stderr).toMatch(/^Unknown option '--exti'/)
    expect(stderr).toContain('Usage: npm start -- [options]')
  })

  test('exits with status 2 for an empty secret', async () => {
    expect((await run(['--exit'], { WEBHOOK_TOKEN: '' })).status).toBe(2)
  })

  test('prints the usage with --help', async () => {
    const { status, stdout } = await run(['--help'])
    expect(status).toBe(0)
    expect(stdout).toContain('Usage: npm start -- [options]')
  })
})
