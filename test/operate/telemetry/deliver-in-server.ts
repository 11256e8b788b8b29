import { trace } from '@opentelemetry/api'
import type { Receiver } from '../../../src/index.ts'
import { deliver, type Payload, samplePayload } from '../../../src/testing/index.ts'

/** Delivers `encoding.finished` while a span of the server's is active, as the instrumentation of HTTP makes one. */
export const deliverInServer = (receiver: Pick<Receiver, 'receive'>, fields: Partial<Payload> = {}) =>
  trace.getTracer('server').startActiveSpan('server', async (span) => {
    try {
      return await deliver(receiver, samplePayload('encoding.finished', fields))
    } finally {
      span.end()
    }
  })
