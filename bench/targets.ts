import type { DurableResult } from './durable.ts'
import type { InProcessResult } from './in-process.ts'
import { number, printTable } from './report.ts'
import type { HttpResult } from './rounds.ts'
import type { SlowResult } from './slow-handlers.ts'

export interface Results {
  readonly http: readonly HttpResult[]
  readonly inProcess: InProcessResult | undefined
  /** MB after every 100,000 events. */
  readonly heap: readonly number[] | undefined
  readonly slowHandlers: SlowResult | undefined
  readonly durable: DurableResult | undefined
}

interface Target {
  readonly name: string
  readonly target: number
  readonly atLeast?: boolean
  readonly unit: string
  /** Reads the value; `undefined` when this run did not measure it. */
  measured(results: Results): number | undefined
}

const overHttp = (name: string, target: number, baseline = 'hand-written'): Target => ({
  name: `${name}: deliveries/s`,
  target,
  atLeast: true,
  unit: `x ${baseline}`,
  measured: ({ http }) => http.find((result) => result.name === name)?.ratio?.median,
})

const targets: readonly Target[] = [
  overHttp('ours/node', 1),
  overHttp('ours/express', 1.15),
  overHttp('ours/node-before-express', 3.5),
  overHttp('ours/hono', 1),
  overHttp('sqlite/express', 0.75, 'memory inbox'),
  {
    name: 'in process: time per delivery',
    target: 1,
    unit: 'x hand-written',
    measured: ({ inProcess }) => inProcess?.ratio.median,
  },
  {
    name: 'handlers of 5 s: acknowledgement p99',
    target: 10,
    unit: 'ms',
    measured: ({ slowHandlers }) => slowHandlers?.p99,
  },
  {
    name: 'heap: largest from 100,000 keys on',
    target: 60,
    unit: 'MB',
    measured: ({ heap }) => heap && Math.max(...heap),
  },
  {
    // Allows 10 % for compiled code and for the arrays of the store.
    name: 'heap: largest / after 100,000 keys',
    target: 1.1,
    unit: 'x',
    measured: ({ heap }) => heap && Math.max(...heap) / (heap[0] ?? Number.NaN),
  },
  {
    name: 'sqlite inbox in process: events/s',
    target: 5,
    atLeast: true,
    unit: 'x a transaction each',
    measured: ({ durable }) => durable?.ratio.median,
  },
  {
    name: 'recovery: until the first of 10,000 events is handled',
    target: 2_000,
    unit: 'ms',
    measured: ({ durable }) => durable?.recovery,
  },
]

export function printTargets(results: Results): void {
  const rows = targets.flatMap(({ name, target, atLeast = false, unit, measured }) => {
    const value = measured(results)
    if (value === undefined) return []
    const met = atLeast ? value >= target : value <= target
    return [[name, `${atLeast ? '>=' : '<='} ${target} ${unit}`, number(value, 2), met ? 'met' : 'not met']]
  })
  printTable('Targets', ['', 'target', 'measured', ''], rows)
}
