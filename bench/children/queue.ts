import { setTimeout as pause } from 'node:timers/promises'
import { answerWith } from '../child.ts'
import { openQueue, type Queue, type QueueName, type QueueOptions } from '../postgres/queues.ts'

export type QueueSettings = Omit<QueueOptions, 'onStart' | 'onHandled'>

export type QueueQuestion =
  | { readonly ask: 'open'; readonly queue: QueueName; readonly settings: QueueSettings }
  /** Accepts from 64 callers for some seconds. `waits`: also until everything is handled. */
  | { readonly ask: 'load'; readonly seconds: number; readonly waits: boolean }
  /** Accepts some events from 64 callers. */
  | { readonly ask: 'fill'; readonly events: number; readonly spread: Spread }
  /** Accepts events at a fixed rate. */
  | { readonly ask: 'pace'; readonly perSecond: number; readonly seconds: number }
  /** Waits until some events have been handled since the queue was opened. */
  | { readonly ask: 'handled'; readonly events: number }
  /** Asks for the number of events that the process has handled, from all the queues that it has opened. */
  | { readonly ask: 'total' }
  | { readonly ask: 'starts' }
  | { readonly ask: 'close' }

/** How many events a media item has: one, five, or one item half of all. */
export type Spread = 'one' | 'five' | 'hot'

export interface Load {
  readonly accepted: number
  readonly acceptedPerSecond: number
  /** Accepted and handled per second: the number of events by the time until the last one was handled. */
  readonly handledPerSecond: number
}

/** The time of a step in ms, on a clock that all processes share, by the key of the event. */
export type Moments = Readonly<Record<string, number>>

const callers = 64

let queue: Queue | undefined
let handled = 0
let total = 0
let openedAt = 0
const starts: Record<string, number> = {}

const now = () => Number(process.hrtime.bigint()) / 1e6
const accept = (key: string) => (queue as Queue).accept(key)

async function open(name: QueueName, settings: QueueSettings): Promise<void> {
  handled = 0
  openedAt = performance.now()
  queue = await openQueue(name, {
    ...settings,
    onStart(key) {
      if (key.startsWith('paced')) starts[key] = now()
    },
    onHandled() {
      handled++
      total++
    },
  })
}

const together = (caller: () => Promise<void>) => Promise.all(Array.from({ length: callers }, caller))

async function load(seconds: number, waits: boolean): Promise<Load> {
  const startedAt = performance.now()
  const elapsed = () => (performance.now() - startedAt) / 1_000
  const target = handled
  let accepted = 0
  await together(async () => {
    while (elapsed() < seconds) {
      await accept(crypto.randomUUID())
      accepted++
    }
  })
  const acceptedPerSecond = accepted / elapsed()
  while (waits && handled < target + accepted) await pause(1)
  return { accepted, acceptedPerSecond, handledPerSecond: accepted / elapsed() }
}

async function fill(events: number, spread: Spread): Promise<void> {
  const round = crypto.randomUUID()
  const mediaOf: Readonly<Record<Spread, (number: number) => string | undefined>> = {
    one: () => undefined,
    five: (number) => `${round} ${number % (events / 5)}`,
    hot: (number) => (number % 2 === 0 ? round : undefined),
  }
  let left = events
  await together(async () => {
    while (left-- > 0) await queue?.accept(crypto.randomUUID(), mediaOf[spread](left))
  })
}

async function pace(perSecond: number, seconds: number): Promise<Moments> {
  const calls: Record<string, number> = {}
  const accepted: Promise<unknown>[] = []
  const startedAt = performance.now()
  for (let number = 0; number < perSecond * seconds; number++) {
    const dueIn = startedAt + (number / perSecond) * 1_000 - performance.now()
    if (dueIn > 0) await pause(dueIn)
    const key = `paced ${crypto.randomUUID()}`
    calls[key] = now()
    accepted.push(accept(key))
  }
  await Promise.all(accepted)
  return calls
}

/** Resolves with the seconds since the queue was opened. */
async function untilHandled(events: number): Promise<number> {
  while (handled < events) await pause(1)
  return (performance.now() - openedAt) / 1_000
}

answerWith<QueueQuestion>(async (question) => {
  if (question.ask === 'load') return load(question.seconds, question.waits)
  if (question.ask === 'pace') return pace(question.perSecond, question.seconds)
  if (question.ask === 'handled') return untilHandled(question.events)
  if (question.ask === 'total') return total
  if (question.ask === 'starts') return starts
  if (question.ask === 'open') await open(question.queue, question.settings)
  else if (question.ask === 'fill') await fill(question.events, question.spread)
  else await queue?.close()
  return 'done'
})
