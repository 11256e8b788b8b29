import { type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'

let milliseconds = 0

function add(entries: readonly PerformanceEntry[]): void {
  for (const { duration } of entries) milliseconds += duration
}

const observer = new PerformanceObserver((list) => add(list.getEntries()))
observer.observe({ entryTypes: ['gc'] })

/** Returns the milliseconds of garbage collection in this process since the last call. */
export function takeCollections(): number {
  add(observer.takeRecords())
  const taken = milliseconds
  milliseconds = 0
  return taken
}
