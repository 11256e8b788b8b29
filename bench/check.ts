import { readFileSync } from 'node:fs'
import { contenderOf } from './contenders/index.ts'
import type { Heap } from './heap.ts'
import { buildWorkingTree } from './package.ts'
import { heapOverHttp } from './parts/http.ts'
import { number, printTable } from './report.ts'

const contenders = ['node:http, `nodeHandler`', 'Express, `expressHandler`']

/** Bytes per delivery by major version of Node and contender, 10 % above what was measured when they were set. */
type Limits = Readonly<Record<string, Readonly<Record<string, Heap>>>>

const limits: Limits = JSON.parse(readFileSync(new URL('./limits.json', import.meta.url), 'utf8'))

/**
 * Measures what a delivery allocates, and what of it survives a collection: steady figures even on a busy machine, unlike
 * times. Resolves with `false` if one is above its limit.
 */
export async function check(): Promise<boolean> {
  const [major = ''] = process.versions.node.split('.')
  const limitsOfNode = limits[major]
  if (limitsOfNode === undefined)
    throw new Error(`bench/limits.json has no limits for Node ${major}, only for ${Object.keys(limits).join(', ')}`)
  const env = { BENCH_PACKAGE: buildWorkingTree() }
  const rows: string[][] = []
  let passed = true
  for (const name of contenders) {
    const heap = await heapOverHttp(contenderOf(name), env)
    const limit = limitsOfNode[name] as Heap
    const isOver = heap.allocated > limit.allocated || heap.survived > limit.survived
    if (isOver) passed = false
    const figures = (['allocated', 'survived'] as const).map((each) => `${number(heap[each])} (${number(limit[each])})`)
    rows.push([name, ...figures, isOver ? 'over its limit' : ''])
  }
  printTable(`Bytes per delivery on Node ${major} (limit)`, ['', 'allocated', 'survived a collection', ''], rows)
  return passed
}
