import { withChild } from '../child.ts'
import type { MemoryQuestion } from '../children/memory.ts'
import { signedDelivery } from '../deliveries.ts'
import { number, printTable } from '../report.ts'

const rows: Readonly<Record<string, MemoryQuestion>> = {
  'a remembered key in `lruStore`, beyond the key itself': 'remembered key',
  'a waiting event in the memory inbox': 'waiting, memory',
  'a waiting event in the SQLite inbox': 'waiting, SQLite',
  'an event that is being handled': 'running',
  'an event that is being handled, by hand': 'running, by hand',
}

const measure = (question: MemoryQuestion) =>
  withChild(
    new URL('../children/memory.ts', import.meta.url),
    { core: 'measured', flags: ['--expose-gc'], env: { BENCH_HANDLER_MS: '3600000' } },
    (child) => child.ask<number>(question),
  )

/** Prints the memory that is retained for each key and for each event. It hardly varies: once is enough. */
export async function measureMemory(): Promise<void> {
  const cells: string[][] = []
  for (const [name, question] of Object.entries(rows)) cells.push([name, number(await measure(question))])
  const size = signedDelivery(0).body.length
  printTable(`Bytes of memory; the body of each event has ${size}`, ['', 'bytes'], cells)
}
