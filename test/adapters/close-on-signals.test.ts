import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { closeOnSignals } from '../../adapters/node.ts'
import { canTest } from '../support/can-test.ts'
import { ownTime } from '../support/own-time.ts'
import { postJson } from '../support/post-json.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const tsx = createRequire(import.meta.url).resolve('tsx')
const program = fileURLToPath(new URL('programs/signalled.ts', import.meta.url))
const TSX_TSCONFIG_PATH = fileURLToPath(new URL('../../tsconfig.json', import.meta.url))

/** Starts the program in a folder, and waits until it listens. */
async function start(env: Record<string, string> = {}, folder?: string, before: readonly string[] = []) {
  const cwd = folder ?? (await temporaryFolder())
  const handledFile = join(cwd, 'handled')
  const { PATH = '' } = process.env
  const [command = '', ...args] = [...before, process.execPath, '--import', tsx, program]
  const child = spawn(command, args, {
    cwd,
    env: { PATH, TSX_TSCONFIG_PATH, HANDLED: handledFile, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  for (const output of [child.stdout, child.stderr]) createInterface(output).on('line', (line) => lines.push(line))
  const ended = once(child, 'close').then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals)
  const line = async (pattern: RegExp) => {
    const failed = ended.then((code) => Promise.reject(new Error(`ended with ${code}:\n${lines.join('\n')}`)))
    failed.catch(() => {})
    return Promise.race([expect.poll(() => lines.some((each) => pattern.test(each))).toBe(true), failed])
  }
  await line(/^listening on/)
  const url = `http://127.0.0.1:${lines
    .find((each) => /^listening on/.test(each))
    ?.split(' ')
    .at(-1)}/`
  const handled = () => (existsSync(handledFile) ? readFileSync(handledFile, 'utf8').split('\n').slice(0, -1) : [])
  return { child, cwd, ended, lines, line, url, handled }
}

const deliver = async (url: string, mediaId: string) =>
  expect((await postJson(url, { type: 'encoding.finished', media_id: mediaId })).status).toBe(200)

/** The lines of the console's logger. */
const logged = (lines: readonly string[]) => lines.filter((line) => line.startsWith('media-webhooks: '))

const closed = (signal: string, unfinished = 0) =>
  expect.stringMatching(`^media-webhooks: closed {"signal":"${signal}","durationMs":\\d+,"unfinished":${unfinished}}$`)

describe.each(['node', 'express', 'koa', 'hono', 'fastify5', 'fastify4'])('a server of %s', (FRAMEWORK) => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'on %s waits for the running handler, logs one line and ends with 0',
    async (signal) => {
      const { child, ended, line, lines, url, handled } = await start({ FRAMEWORK, HANDLER_MS: '400' })
      await deliver(url, 'm1')
      await line(/^begun m1/)
      child.kill(signal)
      expect(await ended).toBe(0)
      expect(handled()).toEqual(['m1'])
      expect(logged(lines).filter((each) => !each.includes('return503OnClosing'))).toEqual([closed(signal)])
      if (FRAMEWORK.startsWith('fastify')) expect(lines.filter((each) => each === 'the hook has run')).toHaveLength(1)
    },
  )
})

describe('a second signal', () => {
  test.each([
    ['SIGTERM', 'SIGTERM'],
    ['SIGINT', 'SIGINT'],
    ['SIGTERM', 'SIGINT'],
    ['SIGINT', 'SIGTERM'],
  ] as const)('changes nothing: %s, then %s, at once and later', async (first, second) => {
    const { child, ended, line, lines, url, handled } = await start({ HANDLER_MS: '600' })
    await deliver(url, 'm1')
    await line(/^begun m1/)
    child.kill(first)
    child.kill(second)
    await expect
      .poll(() =>
        fetch(url).then(
          () => 'open',
          () => 'closed',
        ),
      )
      .toBe('closed')
    child.kill(second)
    expect(await ended).toBe(0)
    expect(handled()).toEqual(['m1'])
    expect(logged(lines)).toEqual([expect.stringContaining('media-webhooks: closed {"signal":"SIG')])
  })
})

describe('an event whose handler takes longer than timeoutMs', () => {
  const slow = { HANDLER_MS: '60000', TIMEOUT_MS: '200' }

  test('is lost with a memory inbox: it is named in the log, and the process ends with 1', async () => {
    const { child, ended, line, lines, url } = await start(slow)
    await deliver(url, 'm1')
    await line(/^begun m1/)
    child.kill('SIGTERM')
    expect(await ended).toBe(1)
    const lost =
      /^media-webhooks: closed; events in memory had no time, and are lost \{.*"unfinished":1,"lost":\[\{"key":"[^"]+","type":"encoding.finished","mediaId":"m1"\}\]\}$/
    expect(logged(lines).filter((each) => each.includes('"lost"'))).toEqual([expect.stringMatching(lost)])
  })

  test('is handled by the next process with a durable inbox, and the process ends with 0', async () => {
    const { child, cwd, ended, line, lines, url } = await start({ ...slow, INBOX_PATH: 'inbox.db' })
    for (const id of ['m1', 'm2']) await deliver(url, id)
    await line(/^begun m1/)
    child.kill('SIGINT')
    expect(await ended).toBe(0)
    expect(lines).toContainEqual(closed('SIGINT', 2))
    const next = await start({ INBOX_PATH: 'inbox.db' }, cwd)
    await expect.poll(() => next.handled().toSorted()).toEqual(['m1', 'm2'])
  })
})

test('connections that are kept open do not hold up the end', async () => {
  const { child, ended, url } = await start({ TIMEOUT_MS: '60000' })
  const agent = new Agent({ keepAlive: true, maxSockets: 2 })
  onTestFinished(() => agent.destroy())
  const ask = async () => {
    const [response] = await once(request(url, { agent }).end(), 'response')
    response.resume()
    await once(response, 'end')
  }
  await Promise.all([ask(), ask()])
  expect(Object.values(agent.freeSockets).flat()).toHaveLength(2)
  const elapsed = ownTime()
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  expect(elapsed()).toBeLessThan(10_000)
})

describe('the process', () => {
  const end = async (CASE: string, more: Record<string, string> = {}) => {
    const { child, ended, line, lines, url } = await start({ CASE, HANDLER_MS: '100', ...more })
    await deliver(url, 'm1')
    await line(/^begun m1/)
    child.kill('SIGTERM')
    return { code: await ended, lines }
  }

  test('ends with 1 if the close fails, and logs why', async () => {
    const { code, lines } = await end('the close fails')
    expect(code).toBe(1)
    expect(logged(lines)).toEqual(['media-webhooks: closing failed {"signal":"SIGTERM"} Error: the disk is full'])
  })

  test('ends with 1 if the close never ends', async () => {
    const { code, lines } = await end('the close never ends')
    expect(code).toBe(1)
    expect(logged(lines)).toEqual([expect.stringContaining('the receiver, or onClosed, has not ended in time')])
  })

  test('ends after onClosed, which gets what is unfinished', async () => {
    const { code, lines } = await end('onClosed runs')
    expect(code).toBe(0)
    expect(lines.slice(-2)).toEqual(['the pool has ended after 0 unfinished', closed('SIGTERM')])
  })

  test('ends with 1 if onClosed fails, and logs why', async () => {
    const { code, lines } = await end('onClosed fails')
    expect(code).toBe(1)
    expect(logged(lines)).toEqual([expect.stringMatching(/closing failed .*the pool is gone/)])
  })

  test('keeps the exit code that the application has set', async () => {
    expect((await end('another exit code')).code).toBe(3)
  })

  test('ends after each of several receivers', async () => {
    const { code, lines } = await end('several receivers')
    expect(code).toBe(0)
    expect(lines.slice(-2)).toEqual(['the slow server has closed', closed('SIGTERM')])
  })

  test('ends after each of several calls', async () => {
    const { code, lines } = await end('several calls')
    expect(code).toBe(0)
    expect(lines.slice(-2)).toEqual(['the slow server has closed', closed('SIGTERM')])
  })

  test('logs to the logger of the receiver', async () => {
    const { code, lines } = await end('logger')
    expect(code).toBe(0)
    expect(lines.at(-1)).toMatch(/^info closed \{"signal":"SIGTERM",/)
  })

  test('ends by the signal, as without a handler, after the function that was returned', async () => {
    expect((await end('removed')).code).toBe('SIGTERM')
  })

  test('closes what was added last, after a hot reload', async () => {
    expect((await end('removed and added again')).code).toBe(0)
  })
})

const unshare = ['unshare', '--fork', '--pid', '--kill-child']
const hasNamespaces = (() => {
  try {
    return execFileSync('unshare', [...unshare.slice(1), 'sh', '-c', 'echo $$'], { stdio: 'pipe' }).toString() === '1\n'
  } catch {
    return false
  }
})()
const isThere = canTest(hasNamespaces, 'no PID namespace can be made here', 'run as root on Linux', { inCi: false })

test.skipIf(!isThere)('a server that is PID 1, as in a container, closes on SIGTERM', async () => {
  const { child, ended, line, lines, url, handled } = await start({ HANDLER_MS: '200' }, undefined, unshare)
  await deliver(url, 'm1')
  await line(/^begun m1/)
  const pid = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'))
  process.kill(pid, 'SIGTERM')
  expect(await ended).toBe(0)
  expect(handled()).toEqual(['m1'])
  expect(logged(lines)).toEqual([closed('SIGTERM')])
})

test.each<[string, readonly unknown[], string]>([
  ['no server', [undefined, { close() {} }], 'pass a server and its receiver: closeOnSignals(server, receiver)'],
  ['no receiver', [{ close() {} }], 'pass a server and its receiver: closeOnSignals(server, receiver)'],
  ['an empty list', [{ close() {} }, []], 'pass a server and its receiver: closeOnSignals(server, receiver)'],
  [
    'a limit as text',
    [{ close() {} }, { close() {} }, { timeoutMs: '5' }],
    'timeoutMs must be a number of ms, 0 or more',
  ],
  [
    'an unknown option',
    [{ close() {} }, { close() {} }, { timeout: 5 }],
    'there is no option timeout; there are timeoutMs, onClosed',
  ],
  [
    'onClosed as a promise',
    [{ close() {} }, { close() {} }, { onClosed: Promise.resolve() }],
    'onClosed must be a function',
  ],
])('closeOnSignals given %s throws at once', (_, given, problem) => {
  const listeners = process.listenerCount('SIGTERM')
  expect(() => (closeOnSignals as (...values: readonly unknown[]) => void)(...given)).toThrow(
    expect.objectContaining({ code: 'invalid_option', message: `closeOnSignals: ${problem}` }),
  )
  expect(process.listenerCount('SIGTERM')).toBe(listeners)
})
