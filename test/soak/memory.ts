import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { faultsOf, trendsOf, trendText } from './memory/judge.ts'
import { places } from './memory/places.ts'
import {
  type FromMeasured,
  type MeasuredInbox,
  type MemoryTask,
  measured,
  type Sample,
  type Totals,
} from './memory/sample.ts'
import type { Part } from './part.ts'

/** Measures memory and size of each inbox at a steady rate with duplicates. They must not grow. */
export const memory: Part = async ({ minutes, rate, inboxes, seed }) => {
  const chosen = measured.filter((inbox) => inboxes.includes(inbox))
  // At the same time: most of it is waiting.
  const faults = chosen.map((inbox) =>
    measure(inbox, { minutes, rate, seed }).catch((error: unknown) => [`memory of ${inbox}: ${error}`]),
  )
  return (await Promise.all(faults)).flat()
}

interface Lengths {
  readonly minutes: number
  readonly rate: number
  readonly seed: number
}

async function measure(inbox: MeasuredInbox, { minutes, rate, seed }: Lengths): Promise<readonly string[]> {
  const place = await places[inbox]()
  try {
    const durationMs = minutes * 60_000
    // Keys expire from the first quarter on, so that as many expire as are added in the half that counts.
    const ttlMs = Math.min(60_000, durationMs / 6)
    const task = { inbox, place: place.address, rate, durationMs, ttlMs, seed }
    const { samples, totals } = await run(task, place.size)
    const { accepted, duplicates, handled } = totals
    console.log(
      `memory of ${inbox}: ${minutes} min, ${accepted} events accepted, ${duplicates} duplicates, ${handled} handled; ` +
        `in the second half ${trendsOf(samples).map(trendText).join(', ')}`,
    )
    return faultsOf(samples, totals).map((fault) => `memory of ${inbox}: ${fault}`)
  } finally {
    await place.remove()
  }
}

async function run(task: MemoryTask, size?: () => Promise<number>) {
  const program = fileURLToPath(new URL('./memory/child.ts', import.meta.url))
  const child = fork(program, [JSON.stringify(task)], { execArgv: ['--expose-gc', '--import', 'tsx'] })
  const samples: Promise<Sample>[] = []
  let totals: Totals | undefined
  child.on('message', (message: FromMeasured) => {
    if ('totals' in message) {
      totals = message.totals
      return
    }
    const sample = sized(message.sample, size)
    samples.push(sample)
    // A long run shows how it goes.
    if (task.durationMs > 600_000 && samples.length % 24 === 0)
      void sample.then((each) => console.log(lineOf(task.inbox, each)))
  })
  const [code] = await once(child, 'exit')
  if (totals === undefined) throw new Error(`the measured process of ${task.inbox} ended with ${code}`)
  return { samples: await Promise.all(samples), totals }
}

const lineOf = (inbox: MeasuredInbox, { minute, events, heap, rss, size }: Sample): string =>
  `memory of ${inbox}: minute ${minute.toFixed(1)}, ${events} events, ${heap} B heap, ${rss} B rss, ${size ?? 'no'} B size`

const sized = async (sample: Sample, size?: () => Promise<number>): Promise<Sample> =>
  size === undefined ? sample : { ...sample, size: await size() }
