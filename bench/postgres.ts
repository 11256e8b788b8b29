import { fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureBacklog } from './postgres/backlog.ts'
import { Bench } from './postgres/bench.ts'
import { measureConditions } from './postgres/conditions.ts'
import { measureGrowth } from './postgres/growth.ts'
import { measureIdle } from './postgres/idle.ts'
import { measureLatency } from './postgres/latency.ts'
import {
  measureAccepting,
  measureDraining,
  measureHandling,
  measureOverExpress,
  measureTransactions,
} from './postgres/throughput.ts'

const rows: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  accept: measureAccepting,
  express: measureOverExpress,
  handle: measureHandling,
  transaction: measureTransactions,
  drain: measureDraining,
  latency: measureLatency,
  backlog: measureBacklog,
  conditions: measureConditions,
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

/**
 * The writes of 8 kB per second that the disk confirms one after another. They limit commits that do not share a write.
 */
function syncsPerSecond(): number {
  const folder = mkdtempSync(join(tmpdir(), 'media-webhooks-bench-'))
  const file = openSync(join(folder, 'file'), 'w')
  const page = new Uint8Array(8_192)
  const startedAt = performance.now()
  let syncs = 0
  for (; performance.now() - startedAt < 500; syncs++) {
    writeSync(file, page, 0, page.length, 0)
    fdatasyncSync(file)
  }
  const elapsed = performance.now() - startedAt
  rmSync(folder, { recursive: true })
  return Math.round(syncs / (elapsed / 1_000))
}

async function main(): Promise<void> {
  const chosen = flags.rows.split(',')
  for (const name of chosen) if (rows[name] === undefined) throw new Error(`No row is named ${name}\n\n${usage}`)
  const bench = await Bench.start(Number(flags.rounds), Number(flags.seconds))
  try {
    const [version] = await bench.postgres.query<{ server_version: string }>('SHOW server_version')
    console.log(
      `node ${process.version}, Postgres ${version?.server_version}, ${syncsPerSecond()} fdatasync/s, load ${loadavg()[0]?.toFixed(1)}, ` +
        `${flags.rounds} rounds of ${flags.seconds} s`,
    )
    for (const name of chosen) await rows[name]?.(bench)
  } finally {
    await bench.remove()
  }
}

if (flags.help) console.log(usage)
else await main()
