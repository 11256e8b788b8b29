import { answerWith } from '../child.ts'
import { type Connection, openConnection, requestOf } from '../connection.ts'
import { deliveriesOf, type Kind, type Scheme } from '../deliveries.ts'

/** Deliveries to send to a server. No earlier question has named the first. */
interface Sent {
  readonly port: number
  readonly first: number
  readonly scheme?: Scheme | undefined
}

export type LoadQuestion =
  /** Sends as many as the server can take. */
  | (Sent & { readonly ask: 'flood'; readonly kind: Kind; readonly deliveries: number })
  /** Sends them at a fixed rate. */
  | (Sent & { readonly ask: 'pace'; readonly perSecond: number; readonly seconds: number })

export interface Flood {
  /** The number of deliveries answered 2xx. */
  readonly acknowledged: number
  readonly perSecond: number
}

export interface Pace {
  readonly acknowledged: number
  /** Milliseconds from the moment at which each delivery was due until its acknowledgement. */
  readonly latencies: readonly number[]
}

const floodConnections = 50
const paceConnections = 256

/** Requests are made before the clock starts, and only once: every server gets the same. */
const made = new Map<string, readonly Buffer[]>()

function requestsOf(kind: Kind, { first, scheme }: Sent, count: number): readonly Buffer[] {
  const id = [kind, first, count, scheme].join()
  const requests = made.get(id) ?? deliveriesOf(kind, first, count, scheme).map(requestOf)
  if (made.size > 16) made.clear()
  made.set(id, requests)
  return requests
}

const connect = (port: number, count: number) => Promise.all(Array.from({ length: count }, () => openConnection(port)))

/** Sends the requests over all connections, one at a time on each. Rejects when the server closes one of them. */
async function flood(port: number, requests: readonly Buffer[]): Promise<Flood> {
  const connections = await connect(port, floodConnections)
  const stop = stayAwake()
  let sent = 0
  let acknowledged = 0
  const sendAll = (connection: Connection) =>
    new Promise<void>((resolve, reject) => {
      const next = () => {
        const request = requests[sent]
        if (request === undefined) return resolve()
        sent++
        connection.send(request, answered)
      }
      const answered = (status: number) => {
        if (status === 0) return reject(new Error('the server closed a connection'))
        if (status >= 200 && status < 300) acknowledged++
        next()
      }
      next()
    })
  const startedAt = performance.now()
  await Promise.all(connections.map(sendAll))
  const perSecond = (requests.length / (performance.now() - startedAt)) * 1_000
  stop()
  for (const connection of connections) connection.close()
  return { acknowledged, perSecond }
}

/** Keeps the event loop from sleeping: waking the load would cost the server time. */
function stayAwake(): () => void {
  let next = setImmediate(function turn() {
    next = setImmediate(turn)
  })
  return () => clearImmediate(next)
}

/**
 * Sends each request when it is due. If no connection is free, the request is sent late. Its latency still counts from
 * its due time, so a slow server does not slow down the measurement.
 */
async function pace(port: number, requests: readonly Buffer[], perSecond: number): Promise<Pace> {
  const idle = await connect(port, paceConnections)
  const latencies: number[] = []
  let sent = 0
  let acknowledged = 0
  const startedAt = performance.now()
  const dueAt = (index: number) => startedAt + (index / perSecond) * 1_000

  const send = (connection: Connection, request: Buffer) => {
    const due = dueAt(sent++)
    connection.send(request, (status) => {
      latencies.push(performance.now() - due)
      if (status === 200) acknowledged++
      idle.push(connection)
    })
  }
  await new Promise<void>((resolve) => {
    const turn = () => {
      if (latencies.length === requests.length) return resolve()
      while (idle.length > 0 && sent < requests.length && dueAt(sent) <= performance.now()) {
        send(idle.pop() as Connection, requests[sent] as Buffer)
      }
      setImmediate(turn)
    }
    turn()
  })
  for (const connection of idle) connection.close()
  return { acknowledged, latencies }
}

answerWith<LoadQuestion>((question) => {
  if (question.ask === 'flood') {
    return flood(question.port, requestsOf(question.kind, question, question.deliveries))
  }
  const { port, perSecond, seconds } = question
  return pace(port, requestsOf('new', question, Math.floor(perSecond * seconds)), perSecond)
})
