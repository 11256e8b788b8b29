import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import { unverified } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { freshPath, receiverOver } from '../inbox/sqlite/sqlite-tests.ts'
import { serve } from '../support/serve.ts'

const root = new URL('../../', import.meta.url)

// Each test starts Node and the TypeScript loader, possibly on a busy machine.

const { PATH } = process.env

/** Starts the program as a process of its own. It is killed at the end of the test. */
function start(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
    cwd: root,
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let errors = ''
  child.stderr.on('data', (chunk) => (errors += chunk))
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, errors }))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return { child, ended, line: async () => (await lines.next()).value as string }
}

describe('the program', () => {
  test('exits with 2 for an unknown command, and prints one line on standard error', async () => {
    const { ended } = start(['lsten'])
    expect(await ended).toEqual({
      code: 2,
      signal: null,
      errors: "media-webhooks: there is no command 'lsten'; did you mean 'listen'? (see 'npx media-webhooks --help')\n",
    })
  })

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'exits with 0 on %s from emulate, and prints no secret that it was given',
    async (signal) => {
      const secrets = { MEDIA_WEBHOOKS_SECRET_KEY: 'from-the-environment' }
      const { child, ended, line } = start(
        ['emulate', '--port', '0', '--access-token', 'from-a-flag', '--json'],
        secrets,
      )
      const text = await line()
      const { url, api, credentials } = JSON.parse(text)
      expect(api).toBe(`${url}/api`)
      expect(Object.keys(credentials)).toEqual(['publicKey'])
      expect(text).not.toMatch(/from-/)

      const headers = { 'stream-public-key': credentials.publicKey, 'stream-secret-key': 'from-the-environment' }
      expect((await fetch(`${api}/webhooks`, { headers })).status).toBe(200)
      const bearer = { authorization: 'Bearer from-a-flag' }
      expect((await fetch(`${api}/webhooks`, { headers: bearer })).status).toBe(200)
      child.kill(signal)
      expect(await ended).toEqual({ code: 0, signal: null, errors: '' })
    },
  )

  test('says that the port of emulate is taken, and how to choose another', async () => {
    const { port } = new URL(await serve(() => {}))
    const { ended } = start(['emulate', '--port', port])
    const errors = `media-webhooks: port ${port} is taken: pass another --port, or --port 0 for a free one\n`
    expect(await ended).toEqual({ code: 1, signal: null, errors })
  })

  test('exits with 0 on SIGINT from listen, even in the middle of a delivery', async () => {
    const { child, ended, line } = start(['listen', '--port', '0', '--json'])
    const { url } = JSON.parse(await line())
    const delivery = fetch(url, {
      method: 'POST',
      body: new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('{')) }),
      duplex: 'half',
    }).catch(() => 'cut off')
    await fetch(url, { method: 'POST', body: '{}' })
    await line()
    child.kill('SIGINT')
    expect(await ended).toEqual({ code: 0, signal: null, errors: '' })
    expect(await delivery).toBe('cut off')
  })

  test('exits with 130 on SIGINT from trigger', async () => {
    let arrived = () => {}
    const delivered = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const origin = await serve(() => arrived())
    const { child, ended } = start(['trigger', 'file.received', '--to', `${origin}/`])
    await delivered
    child.kill('SIGINT')
    const errors = 'interrupted: 0 of 1 acknowledged so far\n'
    expect(await ended).toEqual({ code: 130, signal: null, errors })
  })

  test.each([
    ['doctor, which finds a fault', ['doctor', '<origin>/'], 1],
    [
      'trigger, which is not acknowledged',
      ['trigger', 'lifecycle', '--time-scale', '0', '--to', '<origin>/failing'],
      1,
    ],
    ['trigger, which is acknowledged', ['trigger', 'lifecycle', '--time-scale', '0', '--to', '<origin>/ok'], 0],
  ])('of %s keeps its exit code when the reader of its output disconnects after a line', async (_, args, expected) => {
    const origin = await serve((request, response) => {
      response.writeHead(request.url === '/failing' ? 500 : request.url === '/ok' ? 200 : 204)
      request.resume().on('end', () => setTimeout(() => response.end(), 20))
    })
    const { child, ended, line } = start(args.map((each) => each.replace('<origin>', origin)))
    await line()
    child.stdout.destroy()
    expect(await ended).toEqual({ code: expected, signal: null, errors: '' })
  })

  test('ends inbox watch when the reader of its output has disconnected', async () => {
    const path = await freshPath()
    const receiver = receiverOver({ path }, { verify: unverified(), retry: { attempts: 1 } })
    receiver.onAny(() => {
      throw new Error('no')
    })
    await receiver.ready()
    const { child, ended, line } = start(['inbox', path, 'watch'])
    expect(await line()).toMatch(/dead letters 0$/)
    child.stdout.destroy()
    // The process notices the closed output when it writes.
    await deliver(receiver, samplePayload('encoding.finished'))
    expect(await ended).toEqual({ code: 0, signal: null, errors: '' })
  })

  test('does not crash when the reader of its output disconnects', async () => {
    const { child, ended, line } = start(['listen', '--port', '0', '--json'])
    const { url } = JSON.parse(await line())
    child.stdout.destroy()
    // The process notices the closed output when it writes.
    await fetch(url, { method: 'POST', body: '{}' }).catch(() => {})
    await fetch(url, { method: 'POST', body: '{}' }).catch(() => {})
    expect(await ended).toEqual({ code: 0, signal: null, errors: '' })
  })
})
