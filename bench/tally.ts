import { setTimeout as pause } from 'node:timers/promises'
import { numberOf } from './deliveries.ts'

/** The time that every handler takes, in ms. */
export const handlerMs = Number(process.env['BENCH_HANDLER_MS'] ?? 0)

const runs = new Uint8Array(16_000_000)
let calls = 0
let events = 0

/** The number of handler calls, and of different events among them. Equal when no event was handled twice. */
export interface Tally {
  readonly calls: number
  readonly events: number
}

/** The handler of every contender. It counts its runs in memory outside the measured heap. */
export async function handle(mediaId: string): Promise<void> {
  const number = numberOf(mediaId)
  if (runs[number] === 0) events++
  runs[number] = 1
  calls++
  if (handlerMs > 0) await pause(handlerMs)
}

export const tally = (): Tally => ({ calls, events })

/** Waits until `expected` handlers have run, or for `patienceMs` at most. */
export async function tallyOf(expected: number, patienceMs = 30_000): Promise<Tally> {
  const deadline = Date.now() + patienceMs
  while (calls < expected && Date.now() < deadline) await pause(1)
  return tally()
}
