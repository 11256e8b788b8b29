import { answerWith } from '../child.ts'
import { contenderOf } from '../contenders/index.ts'
import { listen } from '../contenders/listen.ts'
import { beginCost } from '../cpu.ts'
import type { Cost } from '../measure.ts'
import { type Tally, tallyOf } from '../tally.ts'

export type ServerQuestion =
  | { readonly ask: 'port' }
  /** Begins to measure, once so many events have been handled. */
  | { readonly ask: 'begin'; readonly handled: number }
  /** Gives the cost since then, once so many events have been handled. */
  | { readonly ask: 'work'; readonly deliveries: number; readonly handled: number }

/** The work of the server since it began to measure. */
export interface Work extends Tally {
  readonly cost: Cost
}

const port = await listen(await contenderOf(process.argv[2] ?? '').server())
let costOf = beginCost()

answerWith<ServerQuestion>(async (question) => {
  if (question.ask === 'port') return port
  const tally = await tallyOf(question.handled)
  if (question.ask === 'work') return { ...tally, cost: costOf(question.deliveries) } satisfies Work
  costOf = beginCost()
  return 'begun'
})
