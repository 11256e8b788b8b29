import { type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { answerWith } from '../child.ts'
import { signedDelivery, toDelivery } from '../deliveries.ts'
import { durableReceiver, memoryInbox, receiver, sqliteInbox } from '../ours.ts'

/** The longest turns of the event loop, in ms. */
export interface Pauses {
  readonly elapsed: number
  /**
   * The CPU time of the longest turn. For the rest of a turn, the process waits for the disk or for other processes.
   */
  readonly computing: number
  readonly collection: number
}

export type PausesQuestion =
  /** Opens the inbox, which can be in a file of an earlier process. */
  | { readonly ask: 'open'; readonly path?: string | undefined }
  | { readonly ask: 'fill'; readonly events: number }
  /** Takes and handles about 800 deliveries/s meanwhile. */
  | { readonly ask: 'pauses'; readonly seconds: number }

const limits = { concurrency: 16, maxWaiting: 200_000 }
let ours: ReturnType<typeof receiver>
let taken = 0

/** The time in which the events of an opened file are loaded, in ms. */
const openingMs = 5_000

const take = () => ours.receive(toDelivery(signedDelivery(taken++)))

let longestCollection = 0
const observer = new PerformanceObserver((list) => addCollections(list.getEntries()))
const addCollections = (entries: readonly PerformanceEntry[]) => {
  for (const { duration } of entries) longestCollection = Math.max(longestCollection, duration)
}
observer.observe({ entryTypes: ['gc'] })

/** Takes the time of every turn until it is stopped. */
function watchTurns(): () => Pauses {
  addCollections(observer.takeRecords())
  longestCollection = 0
  let [elapsed, computing] = [0, 0]
  let before = performance.now()
  let cpuBefore = process.cpuUsage()
  const turn = () => {
    const now = performance.now()
    const { user, system } = process.cpuUsage(cpuBefore)
    elapsed = Math.max(elapsed, now - before)
    // The CPU time is that of all threads: compilation and collection run in their own.
    computing = Math.max(computing, Math.min(now - before, (user + system) / 1_000))
    before = now
    cpuBefore = process.cpuUsage()
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  return () => {
    turn()
    clearImmediate(next)
    addCollections(observer.takeRecords())
    return { elapsed, computing, collection: longestCollection }
  }
}

async function pauses(seconds: number): Promise<Pauses> {
  const stop = watchTurns()
  const end = performance.now() + seconds * 1_000
  while (performance.now() < end) {
    for (let i = 0; i < 8; i++) void take()
    await pause(10)
  }
  return stop()
}

answerWith<PausesQuestion>(async (question) => {
  if (question.ask === 'pauses') return pauses(question.seconds)
  if (question.ask === 'fill') {
    const call = async () => {
      while (taken < question.events) await take()
    }
    await Promise.all(Array.from({ length: 64 }, call))
    return 'filled'
  }
  const { path } = question
  // Loading the driver takes 20 ms, once in a process.
  if (path !== undefined) await durableReceiver().close()
  const stop = watchTurns()
  ours = receiver({ inbox: path === undefined ? memoryInbox(limits) : sqliteInbox({ ...limits, path }) })
  await ours.ready()
  // The events of the file are loaded after it is opened.
  await pause(openingMs)
  return stop()
})
