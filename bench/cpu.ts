import type { Cost } from './measure.ts'

/** Begins to measure this process. Returns a function that gives the cost of each of `count` deliveries since then. */
export function beginCost(): (count: number) => Cost {
  const startedAt = performance.now()
  const before = process.cpuUsage()
  return (count) => {
    const { user, system } = process.cpuUsage(before)
    const seconds = (performance.now() - startedAt) / 1_000
    return { user: user / count, total: (user + system) / count, perSecond: count / seconds }
  }
}
