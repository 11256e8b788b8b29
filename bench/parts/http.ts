import { type Child, startChild, withChild } from '../child.ts'
import type { Flood, LoadQuestion } from '../children/load.ts'
import type { ServerQuestion, Work } from '../children/server.ts'
import { type Contender, contenderOf, groups } from '../contenders/index.ts'
import type { Kind } from '../deliveries.ts'
import { countInstructions } from '../instructions.ts'
import { type Cost, inTurns, type Measured, printCosts } from '../measure.ts'

const warmUp = 12_000
const measured = 20_000

/** The process that sends. It is kept for all contenders, since it is not measured. */
let load: Child | undefined

export async function stopLoad(): Promise<void> {
  await load?.stop()
}

/** Starts a server in a fresh process, and gives questions to it and to the load. */
export async function withServer<Result>(
  { name }: Contender,
  env: Readonly<Record<string, string>>,
  work: (port: number, server: Child, load: <Answer>(question: LoadQuestion) => Promise<Answer>) => Promise<Result>,
): Promise<Result> {
  load ??= startChild(new URL('../children/load.ts', import.meta.url), { core: 'load' })
  const sender = load
  const script = new URL('../children/server.ts', import.meta.url)
  return withChild(script, { core: 'measured', args: [name], env }, async (server) => {
    const port = await server.ask<number>({ ask: 'port' } satisfies ServerQuestion)
    return work(port, server, (question) => sender.ask(question))
  })
}

/** Measures the deliveries of a kind that a fresh server takes. It is warm when the counters are read first. */
export function costOverHttp(contender: Contender, kind: Kind, env: Readonly<Record<string, string>> = {}) {
  return withServer(contender, env, async (port, server, load): Promise<Cost> => {
    const flood = (kind: Kind, first: number, deliveries: number) =>
      load<Flood>({ ask: 'flood', port, kind, first, deliveries, scheme: contender.scheme })
    if (kind === 'duplicate') await flood('new', 0, measured)
    await flood(kind, 0, warmUp)
    const warmedUp = { duplicate: measured, forged: 0, new: warmUp }[kind]
    await server.ask({ ask: 'begin', handled: warmedUp } satisfies ServerQuestion)
    const instructions = await countInstructions(server, measured)
    const { acknowledged, perSecond } = await flood(kind, warmUp, measured)
    const handled = warmedUp + (kind === 'new' ? measured : 0)
    const question: ServerQuestion = { ask: 'work', deliveries: measured, handled }
    const { calls, events, cost } = await server.ask<Work>(question)
    // Such a measurement would be worthless.
    if (acknowledged !== (kind === 'forged' ? 0 : measured) || calls !== handled || events !== handled) {
      const counts = `${acknowledged} acknowledged, ${events} events handled with ${calls} calls`
      throw new Error(`${contender.name}, ${kind}: ${measured} deliveries, ${counts}`)
    }
    return { ...cost, perSecond, instructions: await instructions?.() }
  })
}

export const overHttp = (contender: Contender): Measured => ({
  ...contender,
  measure: () => costOverHttp(contender, 'new'),
})

/** Prints the cost of a delivery over HTTP, for the chosen contenders and those they are compared with. */
export async function measureHttp(rounds: number, wanted: (name: string) => boolean): Promise<void> {
  const rows: Measured[] = []
  const samples = new Map<string, readonly Cost[]>()
  for (const group of groups) {
    const chosen = group.filter(({ name }) => wanted(name))
    const needed = new Set(chosen.flatMap(({ name, beside = [] }) => [name, ...beside]))
    const measured = group.filter(({ name }) => needed.has(name)).map(overHttp)
    for (const [name, costs] of await inTurns(measured, rounds)) samples.set(name, costs)
    rows.push(...measured)
  }
  if (rows.length > 0) printCosts('A delivery over HTTP', rows, samples)
}

/** Prints the cost of duplicates and rejections over node:http. */
export async function measureRepeatsOverHttp(rounds: number): Promise<void> {
  const kinds = { duplicate: 'a duplicate', forged: 'a bad signature' } as const
  const measured = Object.entries(kinds).flatMap(([kind, what]) => {
    const row = (name: string, beside: string[]): Measured => ({
      name: `${name}: ${what}`,
      beside: beside.map((other) => `${other}: ${what}`),
      measure: () => costOverHttp(contenderOf(name), kind as Kind),
    })
    return [row('node:http, by hand', []), row('node:http, `nodeHandler`', ['node:http, by hand'])]
  })
  printCosts('Duplicates and rejections over HTTP', measured, await inTurns(measured, rounds))
}
