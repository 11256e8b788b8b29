import type { ReceiverOptions, RunReport } from '../../src/index.ts'
import { createReceiver, unverified } from '../../src/index.ts'
import { deliver, type Payload, samplePayload } from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'

/** Makes a receiver with short pauses between attempts by default, and collects the reports of its handlers' runs. */
export function receiverWithReports<Additions = unknown>(options: Partial<ReceiverOptions<Additions>> = {}) {
  const reports: RunReport[] = []
  const receiver = createReceiver<Additions>({
    verify: unverified(),
    logger: silent,
    ...(options.ack === 'handled' ? undefined : { retry: { baseMs: 1 } }),
    hooks: { handling: (report) => void reports.push(report) },
    ...options,
  })
  const outcomes = () => reports.map(({ handler, attempt, outcome }) => `${handler} ${attempt} ${outcome}`)
  /** Delivers `encoding.finished` and waits for the end of its handling. */
  const handled = async (fields?: Partial<Payload>) => {
    const delivered = await deliver(receiver, samplePayload('encoding.finished', fields))
    await delivered.handled
    return delivered
  }
  return { receiver, reports, outcomes, handled }
}
