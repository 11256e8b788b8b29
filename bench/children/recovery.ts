import { answerWith } from '../child.ts'
import { signedDelivery, toDelivery } from '../deliveries.ts'
import { receiver, sqliteInbox } from '../ours.ts'
import { tallyOf } from '../tally.ts'

export type RecoveryQuestion =
  /** Leaves a file as a crash leaves it. */
  | { readonly ask: 'fill'; readonly path: string; readonly finished: number; readonly waiting: number }
  /** Opens it, and gives the ms until the first event is handled. */
  | { readonly ask: 'recover'; readonly path: string }

async function fill({ path, finished, waiting }: Extract<RecoveryQuestion, { ask: 'fill' }>): Promise<void> {
  const ours = receiver({ inbox: sqliteInbox({ path, maxWaiting: 2 * waiting }) })
  ours.on('encoding.started', () => new Promise(() => {}))
  let taken = 0
  const takeUntil = (end: number, type: string) => {
    const call = async () => {
      while (taken < end) await ours.receive(toDelivery(signedDelivery(taken++, 'x-signature', type)))
    }
    return Promise.all(Array.from({ length: 256 }, call))
  }
  await takeUntil(finished, 'encoding.finished')
  await tallyOf(finished)
  await takeUntil(finished + waiting, 'encoding.started')
}

async function recover(path: string): Promise<number> {
  const startedAt = performance.now()
  const ours = receiver({ inbox: sqliteInbox({ path }) })
  await new Promise<void>((resolve) => {
    ours.on('encoding.started', () => resolve())
  })
  return performance.now() - startedAt
}

answerWith<RecoveryQuestion>(async (question) => {
  if (question.ask === 'recover') return recover(question.path)
  await fill(question)
  return 'filled'
})
