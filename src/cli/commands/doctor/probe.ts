import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { deliveryTimeoutMs } from '../../../emulator/sending/profile.ts'
import { msSince } from '../../../internal/timers.ts'

/** One request to the endpoint. */
export interface Probe {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** `true` sends the body in chunks, without Content-Length. */
  readonly chunked?: boolean
}

/** The endpoint's reply to one request. */
export interface Reply {
  readonly durationMs: number
  /** Absent if no complete answer arrived. */
  readonly status?: number
  /** The target of a redirect. It can contain a secret. */
  readonly location?: string
  /** The outcome of the delivery, if the answer comes from a receiver of this package. */
  readonly outcome?: string
  /** The reason why no answer arrived. */
  readonly problem?: string
}

/** The problem if an https URL leads to a port that speaks http. */
export const noTls = 'no answer: the port does not speak TLS'

/** Makes one request. It does not follow redirects, and waits as long as the service would. */
export async function probe(target: Probe, aborted: AbortSignal): Promise<Reply> {
  const startedAt = performance.now()
  const timeout = AbortSignal.timeout(deliveryTimeoutMs)
  const result = await exchange(target, AbortSignal.any([timeout, aborted])).catch((error: NodeJS.ErrnoException) => {
    aborted.throwIfAborted()
    if (timeout.aborted) return { problem: `no answer within ${deliveryTimeoutMs / 1_000} s` }
    // OpenSSL reads `HTTP/1.1 400` as a TLS record: it complains about the version, or since 3.2 about the length.
    if (/wrong version number|packet length too long/.test(error.message)) return { problem: noTls }
    return { problem: `no answer: ${error.code ?? error.message}` }
  })
  return { durationMs: msSince(startedAt), ...result }
}

// Not fetch: it blocks some ports, and its errors say less.
async function exchange({ method, url, headers, body, chunked }: Probe, signal: AbortSignal) {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const length = chunked || method === 'GET' ? {} : { 'Content-Length': body.byteLength }
  // A new connection each time: a kept one can fail because the endpoint has just closed it.
  const outgoing = request(url, { method, headers: { ...headers, ...length }, agent: false, signal })
  // Two calls: if Node gets the body with end(), it adds Content-Length.
  if (method !== 'GET') outgoing.write(body)
  outgoing.end()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve).on('error', reject)
  })
  const outcome = outcomeIn(await readStart(answer))
  outgoing.destroy()
  const { location } = answer.headers
  return {
    status: answer.statusCode ?? 0,
    ...(location && { location }),
    ...(outcome && { outcome }),
  }
}

const maxReplyLength = 4_096

async function readStart(answer: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) {
    text += chunk
    if (text.length > maxReplyLength) break
  }
  return text
}

function outcomeIn(answer: string): string | undefined {
  try {
    const { status, code } = JSON.parse(answer)
    const outcome = status === 'error' ? code : status
    return typeof outcome === 'string' ? outcome : undefined
  } catch {
    return undefined
  }
}
