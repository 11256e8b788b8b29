import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { deliveryTimeoutMs } from '../../../emulator/sending/profile.ts'

/** One request to the endpoint. */
export interface Probe {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Whether the length of the body is kept secret: it is sent in chunks. */
  readonly chunked?: boolean
}

/** What came back. */
export interface Reply {
  readonly durationMs: number
  /** Absent when there was no whole answer. */
  readonly status?: number
  /** Where a redirect leads, which may hold a secret. */
  readonly location?: string
  /** What became of the delivery, or the code of its rejection, where the answer is one of our receivers. */
  readonly outcome?: string
  /** Why there was no answer. */
  readonly problem?: string
}

/** The problem of an https URL whose port speaks http. */
export const noTls = 'no answer: no TLS is spoken there'

/** Makes a request. It follows no redirect, and takes no longer than the service would wait. */
export async function probe(target: Probe, aborted: AbortSignal): Promise<Reply> {
  const begin = performance.now()
  const timeout = AbortSignal.timeout(deliveryTimeoutMs)
  const result = await exchange(target, AbortSignal.any([timeout, aborted])).catch((error: NodeJS.ErrnoException) => {
    aborted.throwIfAborted()
    if (timeout.aborted) return { problem: `no answer within ${deliveryTimeoutMs / 1_000} s` }
    // So OpenSSL calls the beginning of `HTTP/1.1 400`, read as a version, or as a length since OpenSSL 3.2.
    if (/wrong version number|packet length too long/.test(error.message)) return { problem: noTls }
    return { problem: `no answer: ${error.code ?? error.message}` }
  })
  return { durationMs: performance.now() - begin, ...result }
}

// Not fetch: it rejects some ports, and tells less of what went wrong.
async function exchange({ method, url, headers, body, chunked }: Probe, signal: AbortSignal) {
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const length = chunked || method === 'GET' ? {} : { 'Content-Length': body.byteLength }
  // A connection of its own, so that no probe fails for a kept one that the endpoint has just closed.
  const outgoing = request(url, { method, headers: { ...headers, ...length }, agent: false, signal })
  // Written in two steps, since Node gives a body that it gets at once a length.
  if (method !== 'GET') outgoing.write(body)
  outgoing.end()
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve).on('error', reject)
  })
  const outcome = outcomeIn(await beginning(answer))
  outgoing.destroy()
  const { location } = answer.headers
  return {
    status: answer.statusCode ?? 0,
    ...(location && { location }),
    ...(outcome && { outcome }),
  }
}

const readAtMost = 4_096

async function beginning(answer: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) {
    text += chunk
    if (text.length > readAtMost) break
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
