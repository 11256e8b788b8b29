import { parseArgs } from 'node:util'
import { measureBacklog } from './postgres/backlog.ts'
import { Bench } from './postgres/bench.ts'
import { measureGrowth } from './postgres/growth.ts'
import { measureIdle } from './postgres/idle.ts'
import { measureLatency } from './postgres/latency.ts'
import { measureAccepting, measureDraining, measureHandling, measureTransactions } from './postgres/throughput.ts'

const rows: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  accept: measureAccepting,
  handle: measureHandling,
  transaction: measureTransactions,
  drain: measureDraining,
  latency: measureLatency,
  backlog: measureBacklog,
  idle: measureIdle,
  growth: (bench) => measureGrowth(bench, Number(flags.minutes)),
}

const usage = `npm run bench:postgres -- [options]

  --rows <names>     only these rows, separated by commas: ${Object.keys(rows).join(', ')}
  --rounds <n>       rounds of every contender, 5 by default
  --seconds <n>      seconds of load in a round, 5 by default
  --minutes <n>      minutes of the steady load of the row growth, 5 by default
`

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: Object.keys(rows).join() },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    minutes: { type: 'string', default: '5' },
    help: { type: 'boolean', default: false },
  },
})

async function main(): Promise<void> {
  const chosen = flags.rows.split(',')
  for (const name of chosen) if (rows[name] === undefined) throw new Error(`No row is named ${name}\n\n${usage}`)
  const bench = await Bench.start(Number(flags.rounds), Number(flags.seconds))
  try {
    const [version] = await bench.postgres.query<{ server_version: string }>('SHOW server_version')
    console.log(
      `node ${process.version}, Postgres ${version?.server_version}, ${flags.rounds} rounds of ${flags.seconds} s`,
    )
    for (const name of chosen) await rows[name]?.(bench)
  } finally {
    await bench.remove()
  }
}

if (flags.help) console.log(usage)
else await main()
