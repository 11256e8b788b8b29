import { setImmediate as nextTurn } from 'node:timers/promises'
import { ChurnMap } from '../../src/internal/churn-map.ts'
import { answerWith } from '../child.ts'
import { takeCollections } from './collections.ts'

/** How many entries arrive before the first of them leaves. */
export type BurstQuestion = number

/** One entry that is set, read and deleted, in nanoseconds. */
export interface BurstCost {
  readonly nanoseconds: number
  /** Garbage collection, which is part of the other. */
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

answerWith<BurstQuestion>(async (size) => {
  globalThis.gc?.()
  takeCollections()
  const start = performance.now()
  for (let from = 0, bursts = 1; from + size <= entries; from += size, bursts++) {
    burst(from, size)
    if (bursts % 64 === 0) await nextTurn()
  }
  const elapsed = performance.now() - start
  const cost: BurstCost = { nanoseconds: (elapsed / entries) * 1e6, gcNanoseconds: (takeCollections() / entries) * 1e6 }
  return cost
})
