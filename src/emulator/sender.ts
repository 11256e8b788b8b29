import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

/** What was sent in a delivery. */
interface SentRequest {
  /** Without `user:password@`, which went into the Authorization header. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What the receiver answered. */
interface Answer {
  readonly status: number
  /** Its first 4,096 characters. */
  readonly body: string
}

/** Why a delivery was not acknowledged. */
interface DeliveryFailure {
  /** `status`: the answer was not 2xx. `timeout`: no whole answer in time. `connection`: none could be had. */
  readonly reason: 'status' | 'timeout' | 'connection'
  readonly message: string
}

/** One delivery: what was sent, what came back, and what follows. */
export interface DeliveryRecord {
  /** 1 for the first delivery of an event. */
  readonly attempt: number
  readonly request: SentRequest
  readonly startedAt: Date
  readonly durationMs: number
  readonly answer?: Answer
  /** Absent when it was acknowledged. */
  readonly failure?: DeliveryFailure
  /** Present when the event is sent again, after so many ms. */
  readonly retryInMs?: number
}

/** The options of {@link createSender}. */
export interface SenderOptions {
  /**
   * How long a delivery may take, its answer included, in ms.
   * @defaultValue 3_000
   */
  readonly timeoutMs?: number
  /**
   * Multiplies the pauses between deliveries of an event; `timeoutMs` stays as it is.
   * @defaultValue 1
   */
  readonly timeScale?: number
}

/** Sends events as the service does. Both methods reject when `url` is not an http or https URL. */
export interface Sender {
  /** Makes one delivery. */
  deliver(url: string, body: string): Promise<DeliveryRecord>
  /** Delivers an event until it is acknowledged, with up to 3 retries 3 s apart. Resolves with every delivery. */
  send(url: string, body: string): Promise<DeliveryRecord[]>
}

const retries = 3
const retryPauseMs = 3_000
const answerLimit = 4_096

export function createSender({ timeoutMs = 3_000, timeScale = 1 }: SenderOptions = {}): Sender {
  return {
    async deliver(url, body) {
      return { attempt: 1, ...(await deliver(requestTo(url, body), timeoutMs)) }
    },

    async send(url, body) {
      const request = requestTo(url, body)
      const deliveries: DeliveryRecord[] = []
      for (let attempt = 1; ; attempt++) {
        const delivery = { attempt, ...(await deliver(request, timeoutMs)) }
        if (delivery.failure === undefined || attempt > retries) return [...deliveries, delivery]
        const retryInMs = retryPauseMs * timeScale
        deliveries.push({ ...delivery, retryInMs })
        await pause(retryInMs)
      }
    },
  }
}

function requestTo(url: string, body: string): SentRequest {
  const target = new URL(url)
  if (!/^https?:$/.test(target.protocol))
    throw new TypeError(`deliveries go to http or https, not to ${target.protocol}`)
  const authorization = basicAuthorization(target)
  target.username = target.password = ''
  const headers = {
    'User-Agent': 'go-resty/2.16.5 (https://github.com/go-resty/resty)',
    'Content-Type': 'application/json',
    ...authorization,
  }
  return { url: target.href, headers, body }
}

function basicAuthorization({ username, password }: URL): { Authorization?: string } {
  if (username === '' && password === '') return {}
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`)
  return { Authorization: `Basic ${credentials.toString('base64')}` }
}

async function deliver(request: SentRequest, timeoutMs: number): Promise<Omit<DeliveryRecord, 'attempt'>> {
  const startedAt = new Date()
  const begin = performance.now()
  const signal = AbortSignal.timeout(timeoutMs)
  const result = await post(request, signal).then(judge, (error: NodeJS.ErrnoException) => ({
    failure: signal.aborted
      ? ({ reason: 'timeout', message: `no answer within ${timeoutMs} ms` } as const)
      : ({ reason: 'connection', message: error.code ?? error.message } as const),
  }))
  return { request, startedAt, durationMs: performance.now() - begin, ...result }
}

// Not fetch: it would add headers that the service does not send, and refuse some ports.
function post({ url, headers, body }: SentRequest, signal: AbortSignal): Promise<Answer> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    // A connection of its own, so that no delivery fails for a kept one that the receiver has just closed.
    const outgoing = request(url, { method: 'POST', headers, agent: false, signal }, (incoming) => {
      const status = incoming.statusCode ?? 0
      text(incoming).then((answer) => resolve({ status, body: answer.slice(0, answerLimit) }), reject)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

function judge(answer: Answer): { answer: Answer; failure?: DeliveryFailure } {
  if (answer.status >= 200 && answer.status < 300) return { answer }
  return { answer, failure: { reason: 'status', message: `answered ${answer.status}` } }
}
