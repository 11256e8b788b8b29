import { parseArgs } from 'node:util'
import { type KillReport, killRun } from '../inbox/postgres/kill/run.ts'
import { PostgresServer } from '../postgres/postgres-server.ts'

// --kills 500, --seed 7; --without-transaction shows how many rows would be doubled without one.
const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '60' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 1_000_000)}` },
    'without-transaction': { type: 'boolean', default: false },
  },
})
const transaction = !values['without-transaction']

/** Returns the reasons why the run does not show that each acknowledged event has exactly one row. */
function faultsOf(report: KillReport): string[] {
  const { acknowledged, missing, doubled, stuck, acceptedTwice, deadLetters, cutOff, leasesLost, outages } = report
  const faults: [holds: boolean, fault: string][] = [
    [missing > 0, `${missing} acknowledged events have no row`],
    [doubled > 0 && transaction, `${doubled} rows too many`],
    [stuck > 0, `${stuck} events are stuck`],
    [acceptedTwice > 0, `${acceptedTwice} handled events were accepted again`],
    [deadLetters.length > 0, `${deadLetters.length} dead letters`],
    [acknowledged < report.kills * 20, 'too few events were acknowledged'],
    [cutOff === 0, 'no kill cut off a running handler'],
    [leasesLost === 0 && transaction, 'no process lost its lease'],
    [outages === 0, 'Postgres was never killed'],
  ]
  return faults.flatMap(([holds, fault]) => (holds ? [fault] : []))
}

const server = await PostgresServer.start()
const [kills, seed] = [Number(values.kills), Number(values.seed)]
const startedAt = Date.now()
const report = await killRun(server, { kills, seed, transaction }).finally(() => server.remove())
const { examples, deadLetters, missing, doubled, acknowledged, pauses, outages, cutOff, cutOffInTransaction } = report
console.log(
  `postgresInbox, three processes on one database, ${transaction ? 'with' : 'without'} a transaction: ${kills} kills, ` +
    `${pauses} pauses, ${outages} kills of Postgres: ${acknowledged} acknowledged, ${missing} missing, ${doubled} doubled, ` +
    `${deadLetters.length} dead letters; ${cutOff} kills cut off a handler, ${cutOffInTransaction} inside its write; ` +
    `${report.leasesLost} runs lost their lease, ${report.duplicates} duplicates ` +
    `(seed ${seed}, ${Math.round((Date.now() - startedAt) / 1_000)} s)`,
)
for (const line of [...examples, ...deadLetters.slice(0, 5)]) console.log(line)
for (const fault of faultsOf(report)) {
  console.log(`FAULT: ${fault}`)
  process.exitCode = 1
}
