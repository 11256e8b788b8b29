import { contenderOf } from './contenders/index.ts'
import { type Cost, inTurns, ratioOf } from './measure.ts'
import { buildLastCommit, buildWorkingTree } from './package.ts'
import { costOverHttp } from './parts/http.ts'
import { costInProcess } from './parts/in-process.ts'
import { number, printTable, type Spread } from './report.ts'

/** Measures a built package. */
type Measure = (env: Readonly<Record<string, string>>) => Promise<Cost>

const cases: Readonly<Record<string, Measure>> = {
  'in process: a new event': (env) => costInProcess({ taker: 'ours' }, { env }),
  'in process: a duplicate': (env) => costInProcess({ taker: 'ours' }, { env, kind: 'duplicate' }),
  'in process: a bad signature': (env) => costInProcess({ taker: 'ours' }, { env, kind: 'forged' }),
  'in process: SQLite': (env) => costInProcess({ taker: 'oursWithSqlite' }, { env, deliveries: 20_000, callers: 64 }),
  'over node:http': (env) => costOverHttp(contenderOf('node:http, `nodeHandler`'), 'new', env),
}

/** What a loss has to exceed, in time per delivery. */
const tolerance = 1.05
const rounds = 5
/** A loss repeats if it is there in more rounds too. */
const repeats = 9

/** Compares the working tree with the last commit. Resolves with `false` when something has become slower. */
export async function check(): Promise<boolean> {
  const folders = { before: buildLastCommit(), now: buildWorkingTree() }
  const rows: string[][] = []
  let passed = true
  for (const [name, measure] of Object.entries(cases)) {
    const timeIn = async (rounds: number): Promise<Spread> => {
      const both = Object.entries(folders).map(([name, folder]) => ({
        name,
        measure: () => measure({ BENCH_PACKAGE: folder }),
      }))
      return ratioOf(await inTurns(both, rounds), 'before', 'now')
    }
    const first = await timeIn(rounds)
    const again = first.median > tolerance ? await timeIn(repeats) : undefined
    const isSlower = again !== undefined && again.median > tolerance
    if (isSlower) passed = false
    rows.push([name, textOf(first), again === undefined ? '' : textOf(again), isSlower ? 'slower' : ''])
  }
  printTable(
    'CPU time of a delivery, in that of the last commit',
    ['', `${rounds} pairs`, `${repeats} pairs`, ''],
    rows,
  )
  return passed
}

const textOf = ({ median, min, max }: Spread) => `${number(median, 3)} (${number(min, 3)} to ${number(max, 3)})`
