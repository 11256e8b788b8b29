import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { msSince } from '../../../internal/timers.ts'
import { deliveryTimeoutMs } from '../../../service/emulator/sending/profile.ts'

export interface Probe {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Sends the body chunked, without Content-Length. */
  readonly chunked?: boolean
}

export interface Reply {
  readonly durationMs: number
  /** Absent without a complete answer. */
  readonly status?: number
  /** Redirect target. It may contain a secret. */
  readonly location?: string
  /** The delivery's outcome, if this package's receiver answered. */
  readonly outcome?: string
  readonly problem?: string
}

/** An https URL leads to a plain http port. */
export const noTls = 'no answer: the port does not speak TLS'

/** Makes one request, with the service's timeout and no redirects. */
export async function probe(target: Probe, aborted: AbortSignal): Promise<Reply> {
  const startedAt = performance.now()
  const timeout = AbortSignal.timeout(deliveryTimeoutMs)
  const result = await exchange(target, AbortSignal.any([timeout, aborted])).catch((error: NodeJS.ErrnoException) => {
    aborted.throwIfAborted()
    if (timeout.aborted) return { problem: `no answer within ${deliveryTimeoutMs / 1_000} s` }
    // OpenSSL takes `HTTP/1.1 400` for a TLS record with a wrong version or, since 3.2, a wrong length.
    if (/wrong version number|packet length too long/.test(error.message)) return { problem: noTls }
    return { problem: `no answer: ${error.code ?? error.message}` }
  })
  return { durationMs: msSince(startedAt), ...result }
}

// Not fetch: it blocks some ports and its errors say less.
async function exchange({ method, url, headers, body, chunked }: Probe, signal: AbortSignal) {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const length = chunked || method === 'GET' ? {} : { 'Content-Length': body.byteLength }
  // No keep-alive: the endpoint may just be closing an idle connection.
  const outgoing = request(url, { method, headers: { ...headers, ...length }, agent: false, signal })
  // Not end(body): Node would add Content-Length.
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
