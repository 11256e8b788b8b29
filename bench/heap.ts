import { startChild } from './child.ts'
import { number, printTable } from './report.ts'

const step = 100_000
const steps = 10

/** Measures the heap in MB after every 100,000 of 1,000,000 events, after a garbage collection. */
export async function measureHeap(): Promise<readonly number[]> {
  const child = startChild(new URL('./children/heap.ts', import.meta.url), { core: 'measured', flags: ['--expose-gc'] })
  const megabytes: number[] = []
  try {
    while (megabytes.length < steps) megabytes.push(await child.ask<number>(step))
  } finally {
    await child.stop()
  }
  return megabytes
}

export function printHeap(megabytes: readonly number[]): void {
  const rows = megabytes.map((value, index) => [number((index + 1) * step), number(value, 1)])
  printTable('Heap of the receiver, in MB', ['events', 'heapUsed'], rows)
}
