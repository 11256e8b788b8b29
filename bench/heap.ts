import { GCProfiler } from 'node:v8'

/** What the deliveries did to the heap. In bytes per delivery. */
export interface Heap {
  readonly allocated: number
  /** Copied by the collections of new objects: what should have died young, but was still referenced. */
  readonly survived: number
}

/** Young objects die within one event-loop turn. A fixed size makes both figures repeatable on any machine. */
export const heapFlags = ['--min-semi-space-size=4', '--max-semi-space-size=4']

type Collection = ReturnType<GCProfiler['stop']>['statistics'][number]

/** Begins to watch the heap. Returns a function that gives the figures of each of `count` deliveries since then. */
export function beginHeap(): (count: number) => Heap {
  const profiler = new GCProfiler()
  profiler.start()
  const startedWith = process.memoryUsage().heapUsed
  return (count) => {
    const { statistics } = profiler.stop()
    const freed = statistics.reduce((sum, { beforeGC, afterGC }) => sum + usedBy(beforeGC) - usedBy(afterGC), 0)
    const survived = statistics.filter(({ gcType }) => gcType === 'Scavenge').reduce((sum, gc) => sum + copiedBy(gc), 0)
    return { allocated: (process.memoryUsage().heapUsed - startedWith + freed) / count, survived: survived / count }
  }
}

const usedBy = ({ heapStatistics }: Collection['beforeGC']) => heapStatistics.usedHeapSize

/** A scavenge copies what lives to the other half of the young generation or, the second time, to the old one. */
function copiedBy({ beforeGC, afterGC }: Collection): number {
  const size = (heap: Collection['beforeGC'], space: string) =>
    heap.heapSpaceStatistics.find(({ spaceName }) => spaceName === space)?.spaceUsedSize ?? 0
  return size(afterGC, 'new_space') + size(afterGC, 'old_space') - size(beforeGC, 'old_space')
}
