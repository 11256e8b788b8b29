import { context, propagation, trace } from '@opentelemetry/api'
import { ParentBasedSampler, type Sampler, SamplingDecision } from '@opentelemetry/sdk-trace-node'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import type { AcceptedEvent } from '../../../src/inbox/inbox.ts'
import type { TraceCarrier } from '../../../src/inbox/reading.ts'
import { memoryInbox } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { Collector } from './collector.ts'
import { deliverInServer } from './deliver-in-server.ts'
import { startSdk } from './sdk.ts'
import { tracedReceiver } from './tracing.ts'

// The carrier that is stored with an event, and the trace that is made of it.

const collector = await Collector.start()
let isSampling = true
const root: Sampler = {
  shouldSample: () => ({
    decision: isSampling ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD,
  }),
}
const sampler = new ParentBasedSampler({ root })
const { exportSpans, shutdown } = startSdk(collector.url, sampler)

beforeEach(async () => {
  isSampling = true
  await exportSpans()
  collector.clear()
})
afterAll(async () => {
  await shutdown()
  collector.close()
})

/** A memory inbox that stores another trace than it gets, and notes what it got. */
function inboxThatStores(replace: (trace: TraceCarrier | undefined) => unknown = (trace) => trace) {
  const stored: (TraceCarrier | undefined)[] = []
  const definition = memoryInbox()
  return {
    stored,
    inbox: {
      ...definition,
      open(host: never) {
        const inbox = definition.open(host)
        const accept = inbox.accept.bind(inbox)
        const replaced = (accepted: AcceptedEvent) => {
          stored.push(accepted.trace)
          return { ...accepted, trace: replace(accepted.trace) as TraceCarrier }
        }
        return Object.assign(inbox, {
          accept: ((accepted, options) => accept(replaced(accepted), options)) as typeof accept,
        })
      },
    },
  }
}

const handledSpan = () =>
  vi.waitFor(async () => {
    await exportSpans()
    const [run] = collector.named('process')
    if (run === undefined) throw new Error('no handler has run')
    return run
  })

test('the trace is stored without the baggage of the request', async () => {
  const { inbox, stored } = inboxThatStores()
  const receiver = tracedReceiver({ inbox }).on('encoding.finished', () => {})
  const baggage = propagation.createBaggage({ user: { value: 'somebody' } })
  await context.with(propagation.setBaggage(context.active(), baggage), () => deliverInServer(receiver))
  expect(stored).toEqual([{ traceparent: expect.stringMatching(/^00-[\da-f]{32}-[\da-f]{16}-01$/) }])
})

test('a delivery that is not sampled has handlers that are not, even if all are sampled by then', async () => {
  isSampling = false
  const { inbox, stored } = inboxThatStores()
  let sampled: number | undefined
  const receiver = tracedReceiver({ inbox }).on('encoding.finished', () => {
    sampled = trace.getActiveSpan()?.spanContext().traceFlags
  })
  const { handled } = await deliver(receiver, samplePayload('encoding.finished'))
  isSampling = true
  await handled
  expect(stored).toEqual([{ traceparent: expect.stringMatching(/-00$/) }])
  expect(sampled).toBe(0)
  await exportSpans()
  expect(collector.spans).toEqual([])
})

const valid = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['text', valid],
  ['a number', 5],
  ['an empty object', {}],
  ['a list', [valid]],
  ['a trace that is not a text', { traceparent: 5 }],
  ['a list of traces', { traceparent: [valid] }],
  ['a trace id of zeros', { traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` }],
  ['a trace of another format', { traceparent: `${'f'.repeat(100_000)}` }],
  ['an inherited trace', Object.create({ traceparent: valid })],
  [
    'an object that cannot be read',
    new Proxy(
      {},
      {
        getOwnPropertyDescriptor() {
          throw new Error('unreadable')
        },
      },
    ),
  ],
])('an event that was stored with %s instead of a trace is handled in a trace of its own', async (_, carrier) => {
  const { inbox } = inboxThatStores(() => carrier)
  const receiver = tracedReceiver({ inbox }).on('encoding.finished', () => {})
  await deliverInServer(receiver)
  expect(await handledSpan()).toMatchObject({
    parent: undefined,
    links: [],
    attributes: { 'media_webhooks.outcome': 'handled' },
  })
})

test('a stored trace with a broken or hostile state is that trace anyway', async () => {
  const carrier = { traceparent: valid, tracestate: `a=${'b'.repeat(10_000)},\u0000=;`, baggage: 'user=somebody' }
  const { inbox } = inboxThatStores(() => carrier)
  let baggage: unknown
  const receiver = tracedReceiver({ inbox }).on('encoding.finished', () => {
    baggage = propagation.getActiveBaggage()
  })
  await deliverInServer(receiver)
  expect(await handledSpan()).toMatchObject({ traceId: valid.slice(3, 35), parent: valid.slice(36, 52) })
  expect(baggage).toBeUndefined()
})

test.each(['inject', 'extract'] as const)('a propagator whose %s throws stops no event', async (method) => {
  const broken = vi.spyOn(propagation, method).mockImplementation(() => {
    throw new Error('broken')
  })
  try {
    const receiver = tracedReceiver().on('encoding.finished', () => {})
    expect(await deliverInServer(receiver)).toMatchObject({ status: 200 })
    expect(await handledSpan()).toMatchObject({ attributes: { 'media_webhooks.outcome': 'handled' } })
  } finally {
    broken.mockRestore()
  }
})
