import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'
import { openTelemetry } from '../../../../src/operate/telemetry/index.ts'
import { silent } from '../../../support/silent.ts'
import { deliverInServer } from '../deliver-in-server.ts'
import { startSdk } from '../sdk.ts'

// A process that accepts an event and is killed while its handler runs.

/** The messages to the process. */
export interface AcceptingTask {
  readonly path: string
  /** The URL of the collector. */
  readonly collector: string
}
/** Its answers. */
export type FromAccepting = 'handling'

const { path, collector } = JSON.parse(process.argv[2] as string) as AcceptingTask
const { exportSpans } = startSdk(collector)
const receiver = createReceiver({
  verify: unverified(),
  inbox: sqliteInbox({ path }),
  logger: silent,
  telemetry: openTelemetry(),
})
receiver.on(
  'encoding.finished',
  async () => {
    await delivered
    await exportSpans()
    process.send?.('handling' satisfies FromAccepting)
    await new Promise(() => {})
  },
  { name: 'publish' },
)
process.on('disconnect', () => process.exit(1))
const delivered = deliverInServer(receiver, { media_id: 'a-film' })
