import { answerWith } from '../child.ts'
import { contenderOf } from '../contenders/index.ts'
import { listen } from '../contenders/listen.ts'
import { beginCost } from '../cpu.ts'
import { beginHeap, type Heap, heapFlags } from '../heap.ts'
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
  /** If the server was started with `heapFlags`. */
  readonly heap?: Heap | undefined
}

const port = await listen(await contenderOf(process.argv[2] ?? '').server())
const watchesHeap = heapFlags.every((flag) => process.execArgv.includes(flag))
let costOf = beginCost()
let heapOf = watchesHeap ? beginHeap() : undefined

answerWith<ServerQuestion>(async (question) => {
  if (question.ask === 'port') return port
  const tally = await tallyOf(question.handled)
  if (question.ask === 'work')
    return { ...tally, cost: costOf(question.deliveries), heap: heapOf?.(question.deliveries) } satisfies Work
  costOf = beginCost()
  if (watchesHeap) heapOf = beginHeap()
  return 'begun'
})
