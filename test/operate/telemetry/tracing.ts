import { afterAll, beforeEach, onTestFinished, vi } from 'vitest'
import { createReceiver, type ReceiverOptions, unverified } from '../../../src/index.ts'
import { openTelemetry } from '../../../src/operate/telemetry/index.ts'
import { silent } from '../../support/silent.ts'
import { Collector, type Exported } from './collector.ts'
import { startSdk } from './sdk.ts'

/** Starts the SDK of a test file, whose exports go to a collector that is empty before each test. */
export async function startTracing() {
  const collector = await Collector.start()
  const sdk = startSdk(collector.url)
  beforeEach(async () => {
    await sdk.exportSpans()
    collector.clear()
  })
  afterAll(async () => {
    await sdk.shutdown()
    collector.close()
  })
  /** Waits until as many spans with a name have been exported. */
  const exported = (name: string, count = 1): Promise<readonly Exported[]> =>
    vi.waitFor(async () => {
      await sdk.exportSpans()
      const spans = collector.named(name)
      if (spans.length < count) throw new Error(`${spans.length} of ${count} spans ${name}`)
      return spans
    })
  return { collector, exported, ...sdk }
}

/** Makes a receiver that is traced, with short pauses between attempts. It is closed with the test. */
export function tracedReceiver<Additions = unknown>(options: Partial<ReceiverOptions<Additions>> = {}) {
  const receiver = createReceiver<Additions>({
    verify: unverified(),
    logger: silent,
    telemetry: openTelemetry(),
    ...(options.ack === 'handled' ? undefined : { retry: { attempts: 2, baseMs: 1 } }),
    ...options,
  })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 2_000 })))
  return receiver
}
