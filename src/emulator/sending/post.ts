import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { type Clock, dateOf, systemClock } from '../shared/clock.ts'
import type { Answer, DeliveryFailure, DeliveryRecord, SentRequest, WireFault } from './sending.ts'

/** How a delivery is made. */
export interface PostOptions {
  /** How long it may take, its answer included, in ms. */
  readonly timeoutMs: number
  /** @defaultValue none */
  readonly fault?: WireFault | undefined
  /** Cuts it off. */
  readonly signal?: AbortSignal | undefined
  /** @defaultValue the machine's */
  readonly clock?: Clock | undefined
}

/** What came of a delivery. */
export type Posted = Omit<DeliveryRecord, 'attempt' | 'copy' | 'retryInMs'>

type Outcome = Pick<DeliveryRecord, 'answer' | 'failure'>

/** What is kept of an answer, in characters. */
const keptOfAnswer = 1_024

/** What is read of an answer, in characters: enough for any sound one, and an end to one that has none. */
const readOfAnswer = 65_536

/** Makes one POST. It never rejects: whatever goes wrong is the failure in its record. */
export async function post(request: SentRequest, options: PostOptions): Promise<Posted> {
  const { fault, clock = systemClock } = options
  const whole = Buffer.from(fault === 'corrupt-body' ? corrupted(request.body) : request.body)
  const sent = fault === 'cut-connection' ? whole.subarray(0, whole.length / 2) : whole
  const startedAt = dateOf(clock())
  const startedAtMs = performance.now()
  const outcome = await exchange(request, whole.length, sent, options).catch(connectionFailure)
  return {
    request: fault === undefined ? request : { ...request, body: sent.toString() },
    startedAt,
    durationMs: performance.now() - startedAtMs,
    ...outcome,
  }
}

// Not fetch: it would add headers that the service does not send, refuse some ports and follow redirects.
function exchange(to: SentRequest, length: number, body: Buffer, options: PostOptions): Promise<Outcome> {
  const { timeoutMs, fault, signal } = options
  const request = to.url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve) => {
    const end = (outcome: Outcome) => {
      clearTimeout(timer)
      resolve(outcome)
      outgoing.destroy()
    }
    const fail = (reason: DeliveryFailure['reason'], message: string) => end({ failure: { reason, message } })

    // A connection of its own, so that no delivery fails for a kept one that the receiver has just closed.
    const headers = { ...to.headers, 'Content-Length': length }
    const outgoing = request(to.url, { method: 'POST', headers, agent: false, signal })
    const timer = setTimeout(() => fail('timeout', `no answer within ${timeoutMs} ms`), timeoutMs)
    // An answer that has begun tells by itself whether it is whole, whatever becomes of the connection behind it.
    let answered = false
    outgoing.on('error', (error) => answered || end(connectionFailure(error)))
    outgoing.on('close', () => answered || fail('connection', 'closed without an answer'))
    outgoing.on('response', (incoming) => {
      answered = true
      if (fault === 'lost-answer') return fail('connection', 'lost-answer: the connection was cut before the answer')
      readAnswer(incoming).then(
        (answer) => end(judge(answer)),
        (error) => end(connectionFailure(error)),
      )
    })

    if (fault !== 'cut-connection') outgoing.end(body)
    // Once it has left this process, so that the receiver sees the half of it and not nothing.
    else outgoing.write(body, (error) => error ?? fail('connection', 'cut-connection: it broke off in the middle'))
  })
}

async function readAnswer(incoming: IncomingMessage): Promise<Answer> {
  let body = ''
  let read = 0
  for await (const chunk of incoming.setEncoding('utf8') as AsyncIterable<string>) {
    read += chunk.length
    if (body.length < keptOfAnswer) body = (body + chunk).slice(0, keptOfAnswer)
    if (read >= readOfAnswer) break
  }
  // A copy, for a part of a string keeps the whole of it in memory.
  return { status: incoming.statusCode ?? 0, body: Buffer.from(body).toString() }
}

function judge(answer: Answer): Outcome {
  const { status } = answer
  if (status >= 200 && status < 300) return { answer }
  const hint = status >= 300 && status < 400 ? ': redirects are not followed' : ''
  return { answer, failure: { reason: 'status', message: `answered ${status}${hint}` } }
}

const connectionFailure = (error: NodeJS.ErrnoException): Outcome => ({
  failure: { reason: 'connection', message: error.code ?? error.message },
})

// Of the same length, and no JSON ends like this.
const corrupted = (body: string): string => `${body.slice(0, -1)}#`
