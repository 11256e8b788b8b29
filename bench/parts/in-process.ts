import { withChild } from '../child.ts'
import type { InProcessQuestion } from '../children/in-process.ts'
import type { Kind } from '../deliveries.ts'
import { countInstructions } from '../instructions.ts'
import { type Cost, inTurns, type Measured, printCosts } from '../measure.ts'
import type { Setup } from '../takers.ts'

export interface InProcessOptions {
  /** @defaultValue 'new' */
  readonly kind?: Kind
  /** The number of deliveries that are measured. @defaultValue 60_000 */
  readonly deliveries?: number
  /** The number of deliveries at a time. @defaultValue 1 */
  readonly callers?: number
  readonly env?: Readonly<Record<string, string>>
}

/** Measures a delivery without HTTP in a fresh process, which has taken as many deliveries before. */
export function costInProcess(setup: Setup, options: InProcessOptions = {}): Promise<Cost> {
  const { kind = 'new', deliveries = 60_000, callers = 1, env = {} } = options
  const script = new URL('../children/in-process.ts', import.meta.url)
  const flags = ['--expose-gc', '--max-old-space-size=8192']
  return withChild(script, { core: 'measured', args: [JSON.stringify(setup)], flags, env }, async (child) => {
    const measure = (kind: Kind) => child.ask<Cost>({ kind, deliveries, callers } satisfies InProcessQuestion)
    if (kind === 'duplicate') await measure('new')
    await measure(kind)
    const instructions = await countInstructions(child, deliveries)
    const cost = await measure(kind)
    return { ...cost, instructions: await instructions?.() }
  })
}

/** Prints the cost of a delivery without HTTP, each one after the other. */
export async function measureInProcess(rounds: number): Promise<void> {
  const row = (name: string, setup: Setup, kind: Kind, beside: string[] = []): Measured => ({
    name,
    beside,
    measure: () => costInProcess(setup, { kind }),
  })
  const pair = (what: string, kind: Kind) => [
    row(`by hand, ${what}`, { taker: 'byHand' }, kind),
    row(`the receiver, ${what}`, { taker: 'ours' }, kind, [`by hand, ${what}`]),
  ]
  const measured = [
    ...pair('a new event', 'new'),
    row('the receiver, with a logger', { taker: 'oursWithLogger' }, 'new', ['by hand, a new event']),
    ...pair('a duplicate', 'duplicate'),
    ...pair('a bad signature', 'forged'),
  ]
  printCosts('A delivery without HTTP', measured, await inTurns(measured, rounds))
}
