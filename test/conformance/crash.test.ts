import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lruStore } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { silent } from '../support/silent.ts'
import type { FromChild, ToChild } from './crash-child.ts'
import { send, verify } from './sending.ts'
import { type HandledEvent, ours, running } from './subject.ts'

const leaseMs = 5_000
const adapters = Object.keys(mounts) as AdapterName[]

// Each adapter has its own event, so that a single process can crash for all of them.
const bodyFor = (adapter: AdapterName) => encodePayload(samplePayload('encoding.finished', { media_id: adapter }))

let clock = 0
const store = lruStore({ now: () => clock })
const completed: string[] = []

let child: ChildProcess
/** The child process's messages: the URL of each adapter, and the events whose handlers are running. */
const urls = new Map<string, string>()
const handling = new Set<string>()
let onNews = () => {}

function hear(message: FromChild): void {
  if ('ask' in message) {
    const answer = (store[message.method] as (...parameters: unknown[]) => unknown)(
      ...(message.parameters as unknown[]),
    )
    child.send({ ask: message.ask, answer } satisfies ToChild)
  } else if ('listening' in message) urls.set(message.listening, message.url)
  else handling.add(message.handling)
  onNews()
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) {
    await new Promise<void>((resolve) => {
      onNews = resolve
    })
  }
}

beforeAll(async () => {
  const program = fileURLToPath(new URL('./crash-child.ts', import.meta.url))
  child = fork(program, { execArgv: ['--import', 'tsx'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  child.on('message', hear)
  child.once('exit', () => onNews())
  await until(() => urls.size === adapters.length || child.exitCode !== null)
  for (const adapter of adapters) {
    const { body } = await send(urls.get(adapter) as string, bodyFor(adapter))
    expect(body).toBe('{"status":"accepted"}')
  }
  await until(() => handling.size === adapters.length)
  const exit = once(child, 'exit')
  process.kill(child.pid as number, 'SIGKILL')
  expect(await exit).toEqual([null, 'SIGKILL'])
})

afterAll(() => {
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
})

describe('after a process was killed while it handled an event', () => {
  /** Delivers the event again to a receiver that shares the store with the killed one. */
  const deliverAgain = async (adapter: AdapterName) => {
    let answer = ''
    const handle = ({ mediaId }: HandledEvent) => void completed.push(mediaId)
    await running(ours(mounts[adapter]), { verify, handle, store, leaseMs, logger: silent }, async (url) => {
      answer = (await send(url, bodyFor(adapter))).body
    })
    return answer
  }

  test.each(adapters)('its lease keeps the event from another receiver behind %s', async (adapter) => {
    // Not a duplicate: the sender would drop an event that no process has handled.
    expect(await deliverAgain(adapter)).toContain('"code":"in_progress"')
    expect(completed).toEqual([])
  })

  describe('and its lease ran out', () => {
    beforeAll(() => {
      clock += leaseMs + 1
    })

    test.each(adapters)('another receiver behind %s handles the event once', async (adapter) => {
      expect(await deliverAgain(adapter)).toBe('{"status":"accepted"}')
      expect(await deliverAgain(adapter)).toBe('{"status":"duplicate"}')
      expect(completed.filter((mediaId) => mediaId === adapter)).toEqual([adapter])
    })
  })
})
