import { setTimeout as pause } from 'node:timers/promises'
import { bullmqInbox } from '../../../../src/inbox/bullmq.ts'
import { createReceiver } from '../../../../src/index.ts'
import { verify } from '../../../conformance/sending.ts'
import { seeded } from '../../../support/seeded.ts'
import { silent } from '../../../support/silent.ts'
import { serve } from '../../kill/child.ts'
import { openRuns } from '../../kill/runs.ts'
import type { QueueTask } from './child.ts'

// A process that expects events, and that will be killed.

export interface ExpectingTask extends QueueTask {
  /** The time in which the end of an encoding has to follow its file, in ms. */
  readonly withinMs: number
}

const task = JSON.parse(process.argv[2] as string) as ExpectingTask
const { connection, queue, handles, leaseMs } = task
const receiver = createReceiver({
  verify,
  inbox: bullmqInbox({ connection, queue, handles, leaseMs }),
  eventKey: ({ type, mediaId }) => `${type} ${mediaId}`,
  logger: silent,
})
const random = seeded(task.seed)
const recordRun = openRuns(task.folder, task.name)
const rule = { then: 'encoding.finished', within: task.withinMs, name: 'late' } as const
receiver.expect('file.received', rule, async ({ mediaId }) => {
  const end = recordRun('late', mediaId)
  // Long enough for a kill to cut some off.
  await pause(random() * 300)
  end('done')
})
serve(receiver)
