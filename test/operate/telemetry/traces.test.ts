import { setTimeout as pause } from 'node:timers/promises'
import { trace } from '@opentelemetry/api'
import { describe, expect, test, vi } from 'vitest'
import { deliverInServer } from './deliver-in-server.ts'
import { inboxes, startServers } from './inboxes.ts'
import { startTracing, tracedReceiver } from './tracing.ts'

startServers()
const { collector, exported } = await startTracing()

const receiving = {
  'messaging.system': 'media_webhooks',
  'messaging.operation.name': 'receive',
  'messaging.operation.type': 'receive',
  'messaging.destination.name': 'encoding.finished',
  'http.response.status_code': 200,
  'media_webhooks.outcome': 'accepted',
}
const processing = {
  'messaging.system': 'media_webhooks',
  'messaging.operation.name': 'process',
  'messaging.operation.type': 'process',
  'messaging.destination.name': 'encoding.finished',
}

describe.each(Object.entries(inboxes))('with an inbox of the kind %s', (_, { canRun, replays = true, make }) => {
  const receiver = async () => tracedReceiver({ inbox: await make() })

  test.runIf(canRun)('a delivery and its handler belong to the trace of the server', async () => {
    const handled = await receiver()
    handled.on('encoding.finished', () => trace.getTracer('app').startSpan('own').end(), { name: 'publish' })
    await deliverInServer(handled, { media_id: 'a-film' })

    const [run] = await exported('process')
    const [delivery] = await exported('receive')
    const [server] = await exported('server')
    const [own] = await exported('own')
    expect(delivery).toEqual({
      name: 'receive encoding.finished',
      kind: 'internal',
      traceId: server?.traceId,
      spanId: expect.any(String),
      parent: server?.spanId,
      links: [],
      attributes: { ...receiving, 'media_webhooks.media_id': 'a-film' },
      exceptions: [],
      error: undefined,
    })
    expect(run).toEqual({
      name: 'process encoding.finished',
      kind: 'consumer',
      traceId: server?.traceId,
      spanId: expect.any(String),
      parent: delivery?.spanId,
      links: [delivery?.spanId],
      attributes: {
        ...processing,
        'media_webhooks.handler': 'publish',
        'media_webhooks.attempt': 1,
        'media_webhooks.media_id': 'a-film',
        'media_webhooks.outcome': 'handled',
      },
      exceptions: [],
      error: undefined,
    })
    expect(own).toMatchObject({ traceId: server?.traceId, parent: run?.spanId })
  })

  test.runIf(canRun)('every attempt has a span, with the error that ended it', async () => {
    const failing = await receiver()
    failing.on(
      'encoding.finished',
      (_, { attempt }) => {
        if (attempt === 1) throw new TypeError('the disk is full')
      },
      { name: 'publish' },
    )
    await deliverInServer(failing)

    const runs = await exported('process', 2)
    const [delivery] = await exported('receive')
    expect(runs.map(({ parent }) => parent)).toEqual([delivery?.spanId, delivery?.spanId])
    expect(runs.map(({ attributes, error }) => ({ ...attributes, error }))).toMatchObject([
      {
        'media_webhooks.attempt': 1,
        'media_webhooks.outcome': 'retried',
        'error.type': 'TypeError',
        error: 'the disk is full',
      },
      { 'media_webhooks.attempt': 2, 'media_webhooks.outcome': 'handled', error: undefined },
    ])
    expect(runs[0]?.exceptions).toEqual([
      {
        'exception.type': 'TypeError',
        'exception.message': 'the disk is full',
        'exception.stacktrace': expect.stringContaining('traces.test.ts'),
      },
    ])
  })

  test.runIf(canRun && replays)('a dead letter that is replayed belongs to the trace of its delivery', async () => {
    let isBroken = true
    const failing = await receiver()
    failing.on('encoding.finished', () => {
      if (isBroken) throw new Error('broken')
    })
    await deliverInServer(failing)
    await exported('process', 2)
    const { deadLetters } = failing.inbox
    const [dead] = await vi.waitFor(async () => {
      const listed = await deadLetters.list()
      expect(listed).toHaveLength(1)
      return listed
    })
    isBroken = false
    expect(await deadLetters.replay(dead?.key as string)).toBe(true)

    const runs = await exported('process', 3)
    const [delivery] = await exported('receive')
    expect(runs.map(({ attributes }) => attributes['media_webhooks.outcome'])).toEqual([
      'retried',
      'dead-lettered',
      'handled',
    ])
    expect(runs.map(({ traceId, parent }) => [traceId, parent])).toEqual(
      runs.map(() => [delivery?.traceId, delivery?.spanId]),
    )
  })

  test.runIf(canRun)('deliveries that are handled at the same time do not mix their traces', async () => {
    const mixed = await receiver()
    const active: [mediaId: string, traceId: string | undefined][] = []
    mixed.on('encoding.finished', async ({ mediaId }) => {
      for (let turn = 0; turn < 3; turn++) {
        await pause(2)
        active.push([mediaId, trace.getActiveSpan()?.spanContext().traceId])
      }
    })
    const mediaIds = Array.from({ length: 20 }, (_, index) => `film-${index}`)
    await Promise.all(mediaIds.map((mediaId) => deliverInServer(mixed, { media_id: mediaId })))

    await exported('process', 20)
    const traceOf = new Map(
      collector.named('receive').map(({ attributes, traceId }) => [attributes['media_webhooks.media_id'], traceId]),
    )
    expect(new Set(traceOf.values()).size).toBe(20)
    expect(active).toEqual(active.map(([mediaId]) => [mediaId, traceOf.get(mediaId)]))
    expect(active).toHaveLength(60)
  })
})
