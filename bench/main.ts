import { parseArgs } from 'node:util'
import { check } from './check.ts'
import { cores } from './child.ts'
import { groups } from './contenders/index.ts'
import { countsInstructions } from './instructions.ts'
import { buildWorkingTree } from './package.ts'
import { measureGrowth } from './parts/growth.ts'
import { measureHttp, measureRepeatsOverHttp, stopLoad } from './parts/http.ts'
import { measureInProcess } from './parts/in-process.ts'
import { measureLatency } from './parts/latency.ts'
import { measureMemory } from './parts/memory.ts'
import { measurePauses } from './parts/pauses.ts'
import { measureRecovery, measureSqlite } from './parts/sqlite.ts'
import { machine } from './report.ts'

/** The parts of the benchmark, in `rounds` rounds each. Parts that take long have fewer rounds. */
const parts: Readonly<Record<string, (rounds: number) => Promise<void>>> = {
  http: (rounds) => measureHttp(rounds, () => true),
  duplicates: measureRepeatsOverHttp,
  'in-process': measureInProcess,
  sqlite: measureSqlite,
  recovery: measureRecovery,
  latency: (rounds) => measureLatency(Math.min(rounds, 3)),
  pauses: (rounds) => measurePauses(Math.min(rounds, 3)),
  memory: measureMemory,
  growth: (rounds) => measureGrowth(Math.min(rounds, 2)),
}

const usage = `npm run bench -- [options]

Prints tables in Markdown, as docs/performance.md has them.

  --only <text>    only what has this text in its name; can be repeated:
                   ${Object.keys(parts).join(', ')},
                   or a server, with those that it is compared with:
                   ${groups
                     .flat()
                     .map(({ name }) => name)
                     .join(' | ')}
  --rounds <n>     rounds of each comparison, 5 by default
  --check          measures the bytes of a delivery, and exits 1 if they are above their limits
`

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [''] },
    rounds: { type: 'string', default: '5' },
    check: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

async function main(): Promise<void> {
  const rounds = Number(flags.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${flags.rounds} is not a whole number from 1`)
  const wanted = (name: string) => flags.only.some((text) => name.toLowerCase().includes(text.toLowerCase()))
  const chosen = Object.keys(parts).filter(wanted)
  const servers = groups.flat().filter(({ name }) => wanted(name))
  if (chosen.length + servers.length === 0) throw new Error(`Nothing is named ${flags.only.join(' or ')}`)
  process.env['BENCH_PACKAGE'] = buildWorkingTree()
  const pinning = cores.length === 2 ? 'the server on one core and the load on another' : 'processes not pinned'
  const counting = countsInstructions ? '' : ', instructions cannot be counted here'
  console.log(`${machine()}; ${pinning}; rounds: ${rounds}${counting}`)
  if (!chosen.includes('http')) await measureHttp(rounds, wanted)
  for (const name of chosen) await parts[name]?.(rounds)
}

// An interrupted run removes its temporary folders too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
try {
  if (flags.help) console.log(usage)
  else if (flags.check) process.exitCode = (await check()) ? 0 : 1
  else await main()
} finally {
  await stopLoad()
}
