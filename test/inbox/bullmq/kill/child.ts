import { bullmqInbox } from '../../../../src/inbox/bullmq.ts'
import { createReceiver } from '../../../../src/index.ts'
import { verify } from '../../../conformance/sending.ts'
import { silent } from '../../../support/silent.ts'
import { handleWithEvidence, type KillTask, serve } from '../../kill/child.ts'

// A process that will be killed.

/** The part of its task that is about the queue. */
export interface QueueTask extends KillTask {
  /** The URL of Redis. */
  readonly connection: string
  readonly queue: string
  /** `false`: it only accepts. */
  readonly handles: boolean
  readonly leaseMs: number
}

const task = JSON.parse(process.argv[2] as string) as QueueTask
const { connection, queue, handles, leaseMs } = task
const receiver = createReceiver({
  verify,
  inbox: bullmqInbox({ connection, queue, handles, leaseMs }),
  eventKey: ({ mediaId }) => mediaId,
  retry: { attempts: 10, baseMs: 20 },
  logger: silent,
})
handleWithEvidence(receiver, task)
serve(receiver)
