import { answerWith } from '../child.ts'
import { openConnection, requestOf } from '../connection.ts'
import { type Scheme, signedDelivery } from '../deliveries.ts'

export type LoadQuestion =
  | { readonly ask: 'flood'; readonly port: number; readonly scheme: Scheme; readonly seconds: number }
  | { readonly ask: 'pace'; readonly port: number; readonly perSecond: number; readonly seconds: number }

/** The result of sending as many deliveries as the server can take. */
export interface Flood {
  /** The number of deliveries, warm-up included. */
  readonly sent: number
  /** The number of deliveries answered 2xx. */
  readonly acknowledged: number
  readonly perSecond: number
  /** The share of the time in which the load was busy. Near 1, the load is the bottleneck, not the server. */
  readonly loadShare: number
}

/** The result of sending at a fixed rate. Latencies are milliseconds to each acknowledgement. */
export interface Pace {
  readonly sent: number
  readonly acknowledged: number
  readonly latencies: readonly number[]
}

const connections = 32
const warmUpDeliveries = 15_000

const requests = (first: number, count: number, scheme: Scheme) =>
  Array.from({ length: count }, (_, index) => requestOf(signedDelivery(first + index, scheme)))

/** Sends requests over all connections, one at a time on each, until none is left or the time is over. */
async function send(port: number, queue: readonly Buffer[], seconds: number) {
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(port)))
  const start = performance.now()
  const end = start + seconds * 1_000
  let sent = 0
  let acknowledged = 0
  const idle = stayAwake(() => sent)

  await Promise.all(
    open.map(
      (connection) =>
        new Promise<void>((resolve) => {
          const next = () => {
            const request = performance.now() < end ? queue[sent] : undefined
            if (!request) return resolve()
            sent++
            connection.send(request, answered)
          }
          const answered = (status: number) => {
            if (status >= 200 && status < 300) acknowledged++
            if (status === 0) resolve()
            else next()
          }
          next()
        }),
    ),
  )
  const elapsed = performance.now() - start
  const loadShare = 1 - idle() / elapsed
  for (const connection of open) connection.close()
  return { sent, acknowledged, perSecond: (sent / elapsed) * 1_000, loadShare }
}

/**
 * Keeps the event loop from sleeping, because waking the load would cost the server time.
 * @returns a function that stops it and returns the idle time: milliseconds of turns in which `progress` did not change
 */
function stayAwake(progress: () => number): () => number {
  let idle = 0
  let before = progress()
  let turnedAt = performance.now()
  const turn = () => {
    const now = performance.now()
    if (progress() === before) idle += now - turnedAt
    before = progress()
    turnedAt = now
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  return () => {
    clearImmediate(next)
    return idle
  }
}

async function flood(port: number, scheme: Scheme, seconds: number): Promise<Flood> {
  const warmUp = await send(port, requests(0, warmUpDeliveries, scheme), Number.POSITIVE_INFINITY)
  // More than the warm-up needs, since the server gets faster. The round ends early when none is left.
  const enough = Math.ceil(warmUp.perSecond * seconds * 1.5)
  const round = await send(port, requests(warmUp.sent, enough, scheme), seconds)
  return {
    ...round,
    sent: warmUp.sent + round.sent,
    acknowledged: warmUp.acknowledged + round.acknowledged,
  }
}

async function pace(port: number, perSecond: number, seconds: number): Promise<Pace> {
  const queue = requests(0, perSecond * seconds, 'x-signature')
  // One connection for each delivery of a second, so that a late answer does not delay the next delivery.
  const idle = await Promise.all(Array.from({ length: perSecond }, () => openConnection(port)))
  const latencies: number[] = []
  let sent = 0
  let acknowledged = 0

  await new Promise<void>((resolve) => {
    const start = performance.now()
    const timer = setInterval(() => {
      const due = Math.min(queue.length, Math.floor(((performance.now() - start) / 1_000) * perSecond))
      while (sent < due) deliver()
    }, 1)
    const deliver = () => {
      const request = queue[sent]
      const connection = idle.shift()
      if (!request || !connection) throw new Error('The server is too slow for a steady load')
      sent++
      const sentAt = performance.now()
      connection.send(request, (status) => {
        latencies.push(performance.now() - sentAt)
        if (status === 200) acknowledged++
        idle.push(connection)
        if (latencies.length < queue.length) return
        clearInterval(timer)
        resolve()
      })
    }
  })
  for (const connection of idle) connection.close()
  return { sent, acknowledged, latencies }
}

answerWith<LoadQuestion>((question) =>
  question.ask === 'flood'
    ? flood(question.port, question.scheme, question.seconds)
    : pace(question.port, question.perSecond, question.seconds),
)
