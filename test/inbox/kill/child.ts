import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { nodeHandler } from '../../../adapters/node.ts'
import type { Receiver } from '../../../src/index.ts'
import { seeded } from '../../support/seeded.ts'
import { openRuns } from './runs.ts'

/** Tells a process that will be killed what to do. */
export interface KillTask {
  /** Unique among the processes of the run. */
  readonly name: string
  /** The folder for the evidence. */
  readonly folder: string
  readonly seed: number
}

/** A message of the process that will be killed. */
export type FromKilled = { readonly url: string } | { readonly unfinished: number }
/** `unfinished`: say how many events are left, or are still expected. */
export type ToKilled = 'unfinished'

/** The handlers of each event, in their order. */
export const handlers = ['first', 'second'] as const

/** Registers handlers that record their runs. The second one fails now and again. */
export function handleWithEvidence(receiver: Receiver, { name, folder, seed }: KillTask): void {
  const random = seeded(seed)
  const recordRun = openRuns(folder, name)
  for (const handler of handlers) {
    receiver.onAny(
      async ({ mediaId }) => {
        const end = recordRun(handler, mediaId)
        await pause(random() * 6)
        const isUnlucky = handler === 'second' && random() < 0.05
        end(isUnlucky ? 'failed' : 'done')
        if (isUnlucky) throw new Error('unlucky')
      },
      { name: handler },
    )
  }
}

/** Listens, and answers the questions of the parent process. Killed or not, this process ends with its parent. */
export function serve(receiver: Receiver): void {
  const tell = (message: FromKilled) => process.send?.(message)
  process.on('disconnect', () => process.exit(1))
  process.on('message', async () => {
    const { waiting, running, retrying, expected = 0 } = await receiver.inbox.stats()
    tell({ unfinished: waiting + running + retrying + expected })
  })
  const server = createServer(nodeHandler(receiver))
  server.listen(0, '127.0.0.1', () => tell({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }))
}
