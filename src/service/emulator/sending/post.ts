import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { msSince } from '../../../internal/timers.ts'
import { type Clock, systemClock, toDate } from '../shared/clock.ts'
import type { Answer, DeliveryFailure, DeliveryRecord, SentRequest, WireFault } from './sending.ts'

export interface PostOptions {
  /** Time limit of the delivery, including its answer, in ms. */
  readonly timeoutMs: number
  readonly fault?: WireFault | undefined
  /** Cuts the delivery off when it aborts. */
  readonly signal?: AbortSignal | undefined
  readonly clock?: Clock | undefined
}

/** A delivery's record, without the sender's own fields. */
export type Posted = Omit<DeliveryRecord, 'attempt' | 'copy' | 'retryInMs'>

type AnswerOrFailure = Pick<DeliveryRecord, 'answer' | 'failure'>

/** Response body kept in the record (characters). */
const maxKeptBody = 1_024

/** Response headers kept in the record (characters). */
const maxKeptHeaders = 2_048

/** Response body read before giving up (characters), in case it never ends. */
const maxReadBody = 65_536

/** Makes one POST. Never rejects: an error is recorded as the failure. */
export async function post(request: SentRequest, options: PostOptions): Promise<Posted> {
  const { fault, clock = systemClock } = options
  const fullBody = Buffer.from(fault === 'corrupt-body' ? corrupted(request.body) : request.body)
  const sent = fault === 'cut-connection' ? fullBody.subarray(0, fullBody.length / 2) : fullBody
  const startedAt = toDate(clock())
  const startedAtMs = performance.now()
  const result = await exchange(request, fullBody.length, sent, options).catch(connectionFailure)
  return {
    request: fault === undefined ? request : { ...request, body: sent.toString() },
    startedAt,
    durationMs: msSince(startedAtMs),
    ...result,
  }
}

// Not fetch: it adds headers the service doesn't send, blocks some ports and follows redirects.
function exchange(to: SentRequest, length: number, body: Buffer, options: PostOptions): Promise<AnswerOrFailure> {
  const { timeoutMs, fault, signal } = options
  const request = to.url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve) => {
    const end = (result: AnswerOrFailure) => {
      clearTimeout(timer)
      resolve(result)
      outgoing.destroy()
    }
    const fail = (reason: DeliveryFailure['reason'], message: string) => end({ failure: { reason, message } })

    // No keep-alive: reusing a socket races with the receiver closing it.
    const headers = { ...to.headers, 'Content-Length': length }
    const outgoing = request(to.url, { method: 'POST', headers, agent: false, signal })
    const timer = setTimeout(() => fail('timeout', `no answer within ${timeoutMs} ms`), timeoutMs)
    // Once the response has started, readAnswer reports connection errors.
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
    // Cut only after half the body is written, so the receiver sees it.
    else
      outgoing.write(
        body,
        (error) => error ?? fail('connection', 'cut-connection: the connection was cut in the middle of the body'),
      )
  })
}

async function readAnswer(incoming: IncomingMessage): Promise<Answer> {
  let body = ''
  let read = 0
  for await (const chunk of incoming.setEncoding('utf8') as AsyncIterable<string>) {
    read += chunk.length
    if (body.length < maxKeptBody) body = (body + chunk).slice(0, maxKeptBody)
    if (read >= maxReadBody) break
  }
  // Copy the body: a V8 substring retains its parent string.
  return { status: incoming.statusCode ?? 0, headers: keptHeaders(incoming), body: Buffer.from(body).toString() }
}

function keptHeaders({ headers }: IncomingMessage): Record<string, string> {
  let length = 0
  const kept = Object.entries(headers).flatMap(([name, value]) => {
    const text = String(value)
    length += name.length + text.length
    return length <= maxKeptHeaders ? [[name, text] as const] : []
  })
  return Object.fromEntries(kept)
}

function judge(answer: Answer): AnswerOrFailure {
  const { status } = answer
  if (status >= 200 && status < 300) return { answer }
  const hint = status >= 300 && status < 400 ? ': redirects are not followed' : ''
  return { answer, failure: { reason: 'status', message: `answered ${status}${hint}` } }
}

const connectionFailure = (error: NodeJS.ErrnoException): AnswerOrFailure => ({
  failure: { reason: 'connection', message: error.code ?? error.message },
})

// Same length, and no JSON ends with '#'.
const corrupted = (body: string): string => `${body.slice(0, -1)}#`
