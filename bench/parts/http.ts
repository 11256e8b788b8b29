import { type Child, startChild, withChild } from '../child.ts'
import type { Flood, LoadQuestion } from '../children/load.ts'
import type { ServerQuestion, Work } from '../children/server.ts'
import { type Contender, contenderOf, groups } from '../contenders/index.ts'
import type { Kind } from '../deliveries.ts'
import { type Heap, heapFlags } from '../heap.ts'
import { countInstructions } from '../instructions.ts'
import { type Cost, type Measured, printCosts, type Samples } from '../measure.ts'

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
  flags: readonly string[] = [],
): Promise<Result> {
  load ??= startChild(new URL('../children/load.ts', import.meta.url), { core: 'load' })
  const sender = load
  const script = new URL('../children/server.ts', import.meta.url)
  return withChild(script, { core: 'measured', args: [name], env, flags }, async (server) => {
    const port = await server.ask<number>({ ask: 'port' } satisfies ServerQuestion)
    return work(port, server, (question) => sender.ask(question))
  })
}

/** Measures new events that a fresh server takes. It is warm when the counters are read first. */
function measureNew(contender: Contender, env: Readonly<Record<string, string>> = {}, flags: readonly string[] = []) {
  const measure = async (port: number, server: Child, load: <Answer>(question: LoadQuestion) => Promise<Answer>) => {
    const flood = (first: number, deliveries: number) =>
      load<Flood>({ ask: 'flood', port, kind: 'new', first, deliveries, scheme: contender.scheme })
    await flood(0, warmUp)
    await server.ask({ ask: 'begin', handled: warmUp } satisfies ServerQuestion)
    const instructions = await countInstructions(server, measured)
    const { acknowledged, perSecond } = await flood(warmUp, measured)
    const handled = warmUp + measured
    const { calls, events, ...work } = await server.ask<Work>({ ask: 'work', deliveries: measured, handled })
    // Such a measurement would be worthless.
    if (acknowledged !== measured || calls !== handled || events !== handled) {
      const counts = `${acknowledged} acknowledged, ${events} events handled with ${calls} calls`
      throw new Error(`${contender.name}: ${measured} deliveries, ${counts}`)
    }
    return { ...work, perSecond, instructions: await instructions?.() }
  }
  return withServer(contender, env, measure, flags)
}

export const overHttp = (contender: Contender): Measured => ({
  ...contender,
  async measure() {
    const { cost, ...measured } = await measureNew(contender)
    return { ...cost, ...measured }
  },
})

/** Measures what new events do to the heap of a server. */
export async function heapOverHttp(contender: Contender, env: Readonly<Record<string, string>>): Promise<Heap> {
  const { heap } = await measureNew(contender, env, heapFlags)
  if (heap === undefined) throw new Error('the server was started without the flags for the heap')
  return heap
}

/** The deliveries of a slice: about 400 ms of load. */
const slice = 4_000
const slicesPerRound = 8

/** A running server, and the deliveries that it has got. */
interface Running {
  readonly contender: Contender
  readonly name: string
  readonly port: number
  readonly server: Child
  sent: number
}

/** A contender, the name of its row, and those that it is compared with. */
interface Row extends Omit<Measured, 'measure'> {
  readonly contender: Contender
}

/**
 * Measures servers that run side by side. The load switches from one to the next every {@link slice}, so that a change of
 * the machine's speed touches all of them.
 */
async function inSlices(rows: readonly Row[], kind: Kind, rounds: number): Promise<Samples> {
  const samples = new Map<string, Cost[]>(rows.map(({ name }) => [name, []]))
  await withServers(rows, async (servers) => {
    for (const running of servers) {
      if (kind === 'duplicate') await flood(running, 'new', measured)
      await flood(running, kind, warmUp)
    }
    for (let turn = 0; turn < rounds * slicesPerRound; turn++)
      for (const running of turn % 2 === 0 ? servers : servers.toReversed())
        samples.get(running.name)?.push(await costOfSlice(running, kind))
  })
  return samples
}

async function withServers(
  [row, ...others]: readonly Row[],
  work: (servers: readonly Running[]) => Promise<void>,
  started: readonly Running[] = [],
): Promise<void> {
  if (row === undefined) return work(started)
  const { contender, name } = row
  return withServer(contender, {}, (port, server) =>
    withServers(others, work, [...started, { contender, name, port, server, sent: 0 }]),
  )
}

/** Sends the next deliveries to a server. Duplicates begin with the first delivery again. */
async function flood(running: Running, kind: Kind, deliveries: number): Promise<Flood> {
  const { contender, port, sent } = running
  const first = kind === 'duplicate' ? 0 : sent
  if (kind === 'new') running.sent += deliveries
  const question: LoadQuestion = { ask: 'flood', port, kind, first, deliveries, scheme: contender.scheme }
  return (load as Child).ask<Flood>(question)
}

async function costOfSlice(running: Running, kind: Kind): Promise<Cost> {
  const { server, name } = running
  await server.ask({ ask: 'begin', handled: running.sent } satisfies ServerQuestion)
  const { acknowledged, perSecond } = await flood(running, kind, slice)
  const question: ServerQuestion = { ask: 'work', deliveries: slice, handled: running.sent }
  const { events, cost } = await server.ask<Work>(question)
  const expected = kind === 'forged' ? 0 : slice
  if (acknowledged !== expected || events !== running.sent)
    throw new Error(`${name}, ${kind}: ${acknowledged} of ${slice} acknowledged, ${events} events handled`)
  return { ...cost, perSecond }
}

/** Prints the cost of a delivery over HTTP, for the chosen contenders and those they are compared with. */
export async function measureHttp(rounds: number, wanted: (name: string) => boolean): Promise<void> {
  const rows: Row[] = []
  const samples = new Map<string, readonly Cost[]>()
  for (const group of groups) {
    const chosen = group.filter(({ name }) => wanted(name))
    const needed = new Set(chosen.flatMap(({ name, beside = [] }) => [name, ...beside]))
    const inGroup = group.filter(({ name }) => needed.has(name)).map((contender) => ({ ...contender, contender }))
    for (const [name, costs] of await inSlices(inGroup, 'new', rounds)) samples.set(name, costs)
    rows.push(...inGroup)
  }
  if (rows.length > 0) printCosts('A delivery over HTTP', rows, samples)
}

/** Prints the cost of duplicates and rejections over node:http. */
export async function measureRepeatsOverHttp(rounds: number): Promise<void> {
  const kinds = { duplicate: 'a duplicate', forged: 'a bad signature' } as const
  const rows: Row[] = []
  const samples = new Map<string, readonly Cost[]>()
  for (const [kind, what] of Object.entries(kinds)) {
    const row = (name: string, beside: string[]): Row => ({
      contender: contenderOf(name),
      name: `${name}: ${what}`,
      beside: beside.map((other) => `${other}: ${what}`),
    })
    const both = [row('node:http, by hand', []), row('node:http, `nodeHandler`', ['node:http, by hand'])]
    for (const [name, costs] of await inSlices(both, kind as Kind, rounds)) samples.set(name, costs)
    rows.push(...both)
  }
  printCosts('Duplicates and rejections over HTTP', rows, samples)
}
