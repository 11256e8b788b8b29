import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { setImmediate } from 'node:timers'
import type { Acknowledgement } from '../../src/index.ts'

/** Time limit for draining an unread body (ms). */
const drainMs = 500
/** Size limit for draining before the connection closes (bytes). */
const maxDrainBytes = 4 * 1024 * 1024
/** Largest content-length worth draining to keep the connection alive (bytes). */
const keepAliveBytes = 65_536

/** Writes the acknowledgement, unless a response was already sent. Never throws. */
export function acknowledge(
  acknowledgement: Acknowledgement,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { status, headers, body } = acknowledgement
  try {
    if (response.headersSent || response.destroyed) return
    const drain = decideDrain(acknowledgement, request, response)
    const closes = drain === 'long'
    // Patched responses return nothing from `writeHead`.
    response.writeHead(status, closes ? { ...headers, connection: 'close' } : headers)
    const text = request.method === 'HEAD' ? '' : body
    if (closes) return endAfterDrain(text, request, response)
    if (drain !== 'none') limitDrain(drain, request, response)
    response.end(text)
  } catch {
    // A patched response threw. Don't leave the sender hanging until its timeout.
    response.destroy?.()
  }
}

/** An unread body: `short` is read to keep the connection, `long` ends it, `stream` (HTTP/2) is closed. */
type Drain = 'none' | 'short' | 'long' | 'stream'

export function decideDrain(
  { outcome, status }: Acknowledgement,
  request: IncomingMessage,
  response: ServerResponse,
): Drain {
  // A body read at once: Node sets `complete` only after the answer. Only a buffered read leaves `readableFlowing` null.
  if (request.readableDidRead && (status === 200 || request.readableFlowing === null)) return 'none'
  // Test libraries pass requests without `complete`.
  const isRead = request.complete !== false || request.readableEnded
  if (request.httpVersionMajor === 2) return isRead ? 'none' : 'stream'
  // The next delivery would be rejected too.
  if (outcome === 'closing') return 'long'
  if (isRead) return 'none'
  // Too slow once; don't wait again. After `Expect` the body may never come.
  const isLast = outcome === 'incomplete' || request.headers.expect !== undefined || !response.shouldKeepAlive
  return !isLast && Number(request.headers['content-length']) <= keepAliveBytes ? 'short' : 'long'
}

/** Drains before closing: closing with unread data resets the connection, and the sender may lose the answer. */
function endAfterDrain(body: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.readableEnded) return void response.end(body)
  if (body !== '') response.write(body)
  let leftBytes = maxDrainBytes
  const end = () => {
    clearTimeout(timer)
    request.off('data', count)
    response.end()
  }
  const count = (chunk: Buffer | string) => {
    leftBytes -= chunk.length
    if (leftBytes < 0) end()
  }
  const timer = setTimeout(end, drainMs)
  request.on('data', count).once('end', end).once('close', end).resume()
}

/** Bounds a drain that the response does not wait for. */
export function limitDrain(drain: 'short' | 'stream', request: IncomingMessage, response: ServerResponse): void {
  if (drain === 'stream') {
    const { stream } = request as unknown as Http2ServerRequest
    // The response's own `finish` waits for the stream to close. NO_ERROR (the default): stop sending.
    stream.once('finish', () => setImmediate(() => stream.close()))
    return
  }
  response.once('finish', () => {
    if (request.complete) return
    const timer = setTimeout(() => request.destroy(), drainMs)
    request.once('close', () => clearTimeout(timer)).resume()
  })
}
