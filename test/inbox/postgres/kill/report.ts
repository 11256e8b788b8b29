import type { KillReport, KillRunOptions } from './run.ts'

/** Writes the report of a run over Postgres in one line. */
export function postgresText(report: KillReport, { kills, seed, transaction }: KillRunOptions): string {
  const { acknowledged, missing, doubled, deadLetters, pauses, outages, cutOff, cutOffInTransaction } = report
  return (
    `postgresInbox, three processes on one database, ${transaction ? 'with' : 'without'} a transaction, ${kills} kills, ` +
    `${pauses} pauses, ${outages} kills of Postgres: ${acknowledged} acknowledged, ${missing} missing, ${doubled} doubled, ` +
    `${deadLetters.length} dead letters; ${cutOff} kills cut off a handler, ${cutOffInTransaction} inside its write; ` +
    `${report.leasesLost} runs lost their lease, ${report.duplicates} duplicates (seed ${seed})`
  )
}

/** Short runs kill Postgres too seldom, and lose a lease too seldom, for their absence to be a fault. */
const longRun = 50

/** Returns the reasons why a run does not show that each acknowledged event has exactly one row. */
export function faultsOf(report: KillReport, transaction: boolean): string[] {
  const { kills, acknowledged, missing, doubled, stuck, acceptedTwice, deadLetters, cutOff, leasesLost, outages } =
    report
  const isLong = kills >= longRun
  const faults: [holds: boolean, fault: string][] = [
    [missing > 0, `${missing} acknowledged events have no row`],
    [doubled > 0 && transaction, `${doubled} rows too many`],
    [stuck > 0, `${stuck} events are stuck`],
    [acceptedTwice > 0, `${acceptedTwice} handled events were accepted again`],
    [deadLetters.length > 0, `${deadLetters.length} dead letters`],
    [acknowledged < kills * 20, `only ${acknowledged} events were acknowledged`],
    [kills > 3 && cutOff === 0, 'no kill cut off a running handler'],
    [isLong && leasesLost === 0 && transaction, 'no process lost its lease'],
    [isLong && outages === 0, 'Postgres was never killed'],
  ]
  return faults.flatMap(([holds, fault]) => (holds ? [fault] : []))
}
