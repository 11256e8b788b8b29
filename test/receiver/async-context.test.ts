import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { createReceiver, type InboxDefinition, lruStore, memoryInbox, unverified } from '../../src/index.ts'
import { encodePayload, samplePayload } from '../../src/testing/index.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { silent } from '../support/silent.ts'

const tenant = new AsyncLocalStorage<string>()
const deliveryOf = (mediaId: string) => ({
  method: 'POST',
  url: '/',
  headers: new Headers(),
  body: encodePayload(samplePayload('encoding.finished', { media_id: mediaId })),
})

const inboxes: [string, () => Promise<InboxDefinition>][] = [
  ['memory', async () => memoryInbox({ concurrency: 1 })],
  ['memory with a store', async () => memoryInbox({ concurrency: 1, store: lruStore() })],
  ['SQLite', async () => sqliteInbox({ path: await freshPath(), concurrency: 1 })],
]

afterEach(() => void vi.unstubAllGlobals())

describe.each(inboxes)('over an inbox in %s', (_, makeInbox) => {
  test('handlers, hooks and onError run in the context in which the receiver was made', async () => {
    const seen: [string, string | undefined][] = []
    const see = (what: string) => void seen.push([what, tenant.getStore()])
    const inbox = await makeInbox()
    const receiver = tenant.run('at start', () =>
      createReceiver({
        verify: unverified(),
        inbox,
        logger: silent,
        retry: { baseMs: 1, maxMs: 1, attempts: 2 },
        hooks: { delivery: () => see('delivery'), handling: () => see('handling'), attempt: () => see('attempt') },
      }),
    )
    onTestFinished(async () => void (await receiver.close({ timeoutMs: 0 })))
    receiver.onAny(
      async () => {
        see('handler')
        await new Promise((resolve) => setTimeout(resolve, 1))
        throw new Error('fails')
      },
      { timeoutMs: 10_000 },
    )
    receiver.onAny(() => new Promise(() => see('handler without an end')), { timeoutMs: 5 })
    receiver.onAny(() => see('handler after one that timed out'))
    receiver.onError(() => see('onError'))
    await Promise.all(['a', 'b', 'c'].map((name) => tenant.run(name, () => receiver.receive(deliveryOf(name)))))
    await vi.waitUntil(async () => (await receiver.inbox.stats()).deadLetters === 3, { timeout: 10_000 })
    expect(new Set(seen.map(([what]) => what)).size).toBe(7)
    expect(seen.filter(([, store]) => store !== 'at start')).toEqual([])
  })
})

test('a transaction runs in the context of its handler', async () => {
  const receiver = createReceiver({
    verify: unverified(),
    inbox: sqliteInbox({ path: await freshPath() }),
    logger: silent,
  })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 0 })))
  const seen: [string, string | undefined][] = []
  receiver.onAny(({ mediaId }, { transaction }) =>
    tenant.run(mediaId, () => transaction(() => void seen.push([mediaId, tenant.getStore()]))),
  )
  await Promise.all(['a', 'b', 'c'].map((name) => receiver.receive(deliveryOf(name))))
  await vi.waitUntil(() => seen.length === 3, { timeout: 10_000 })
  expect(seen.filter(([mediaId, store]) => mediaId !== store)).toEqual([])
})

test('a runtime with AsyncContext is asked for its own snapshot', async () => {
  const run = vi.fn((call: () => unknown) => call())
  vi.stubGlobal('AsyncContext', {
    Snapshot: class {
      run = run
    },
  })
  const receiver = createReceiver({ verify: unverified(), logger: silent })
  const handled = vi.fn()
  receiver.onAny(() => handled())
  await receiver.receive(deliveryOf('a'))
  await vi.waitUntil(() => handled.mock.calls.length === 1, { timeout: 5_000 })
  expect(run).toHaveBeenCalled()
})
