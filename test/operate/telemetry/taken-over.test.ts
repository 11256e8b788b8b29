import { describe, expect, test, vi } from 'vitest'
import type { InboxDefinition } from '../../../src/index.ts'
import { signalled } from '../../support/signalled.ts'
import { deliverInServer } from './deliver-in-server.ts'
import { inboxes, startServers } from './inboxes.ts'
import { startTracing, tracedReceiver } from './tracing.ts'

// A second receiver over the same storage knows only what was stored.

startServers()
const { exported } = await startTracing()

const durable = Object.entries(inboxes).flatMap(([name, { canRun, storage }]) =>
  storage === undefined ? [] : [{ name, canRun, storage }],
)

/** Makes the first receiver, and a function that makes the second one. */
async function receivers(storage: () => Promise<() => InboxDefinition>) {
  const open = await storage()
  return { first: tracedReceiver({ inbox: open() }), second: () => tracedReceiver({ inbox: open() }) }
}

describe.each(durable)('with an inbox of the kind $name', ({ canRun, storage }) => {
  test.runIf(canRun)('an event that the next process takes over stays in its trace', async () => {
    const { first, second } = await receivers(storage)
    const { promise: started, resolve: start } = signalled()
    first.on('encoding.finished', (_, { signal }) => {
      start()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    await deliverInServer(first)
    await started
    await first.close({ timeoutMs: 1 })
    second().on('encoding.finished', () => {})

    const runs = await exported('process', 2)
    const [delivery] = await exported('receive')
    expect(runs.map(({ attributes }) => attributes['media_webhooks.outcome'])).toEqual(['stopped', 'handled'])
    expect(runs.map(({ traceId, parent }) => [traceId, parent])).toEqual(
      runs.map(() => [delivery?.traceId, delivery?.spanId]),
    )
  })

  test.runIf(canRun)('a dead letter that the next process replays stays in its trace', async () => {
    const { first, second } = await receivers(storage)
    first.on('encoding.finished', () => {
      throw new Error('broken')
    })
    await deliverInServer(first)
    await vi.waitFor(async () => expect(await first.inbox.stats()).toMatchObject({ deadLetters: 1 }))
    await first.close()
    const { inbox } = second().on('encoding.finished', () => {})
    const [dead] = await inbox.deadLetters.list()
    expect(await inbox.deadLetters.replay(dead?.key as string)).toBe(true)

    const runs = await exported('process', 3)
    const [delivery] = await exported('receive')
    expect(dead?.trace).toEqual({ traceparent: `00-${delivery?.traceId}-${delivery?.spanId}-01` })
    expect(runs.at(-1)).toMatchObject({
      traceId: delivery?.traceId,
      parent: delivery?.spanId,
      attributes: { 'media_webhooks.outcome': 'handled' },
    })
  })
})
