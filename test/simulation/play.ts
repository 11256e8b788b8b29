import { requestsEndWork } from '../../src/internal/requests.ts'
import type { Setup } from './plan.ts'
import { type Simulated, simulate } from './simulate.ts'

/** Workers have no files. Postgres takes more time than the others. */
export const setups: readonly Setup[] = requestsEndWork
  ? ['memory', 'memory and Redis']
  : ['memory', 'memory and Redis', 'sqlite']

/** Plays the runs of the seeds from `from` on. */
export async function* play(from: number, seeds: number, among = setups): AsyncIterable<Simulated> {
  for (let seed = from; seed < from + seeds; seed++) yield await simulate(seed, among)
}
