import { setImmediate as nextTurn } from 'node:timers/promises'
import { ChurnMap } from '../../src/internal/churn-map.ts'
import { answerWith } from '../child.ts'
import { takeCollections } from './collections.ts'

/** The size of the bursts: how many entries are set before the first is deleted. */
export type BurstQuestion = number

/** The mean cost of setting, reading and deleting an entry. */
export interface BurstCost {
  readonly nanoseconds: number
  /** Garbage collection, which the other includes. */
  readonly gcNanoseconds: number
}

const entries = 2_000_000
const keys = Array.from({ length: entries }, (_, index) => `encoding.finished|${index.toString(16).padStart(12, '0')}`)

const map = process.argv[2] === 'Map' ? new Map<string, object>() : new ChurnMap<string, object>()

function burst(from: number, size: number): void {
  for (let i = from; i < from + size; i++) map.set(keys[i] as string, { key: keys[i] })
  for (let i = from; i < from + size; i++) {
    const key = keys[i] as string
    if (map.get(key) === undefined) throw new Error(`${key} is missing`)
    map.delete(key)
  }
}

async function measure(size: BurstQuestion): Promise<BurstCost> {
  globalThis.gc?.()
  takeCollections()
  const start = performance.now()
  for (let from = 0, bursts = 1; from + size <= entries; from += size, bursts++) {
    burst(from, size)
    if (bursts % 64 === 0) await nextTurn()
  }
  const elapsed = performance.now() - start
  return { nanoseconds: (elapsed / entries) * 1e6, gcNanoseconds: (takeCollections() / entries) * 1e6 }
}

// Warms up the compiler.
await measure(100)
answerWith<BurstQuestion>(measure)
