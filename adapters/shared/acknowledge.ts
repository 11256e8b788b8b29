import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Acknowledgement } from '../../src/index.ts'

/** Grace period for the unread rest of a rejected body (ms). */
const drainMs = 500
/** Bytes of that rest which are read before the connection ends. */
const maxDrainBytes = 4 * 1024 * 1024
/** Maximum declared length of a body whose rest is read to keep the connection (bytes). */
const keepAliveBytes = 65_536

/** Writes the acknowledgement of a delivery, unless something else has answered it. Never throws. */
export function acknowledge(
  acknowledgement: Acknowledgement,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { status, headers, body } = acknowledgement
  try {
    if (response.headersSent || response.destroyed) return
    const drain = drainOf(acknowledgement, request)
    const closes = drain === 'long'
    // Patched responses return nothing from `writeHead`.
    response.writeHead(status, closes ? { ...headers, connection: 'close' } : headers)
    const text = request.method === 'HEAD' ? '' : body
    if (closes) return endAfterDrain(text, request, response)
    if (drain !== 'none') limitDrain(drain, request, response)
    response.end(text)
  } catch {
    // A patched response threw. Without an answer the sender would wait until its own timeout.
    response.destroy?.()
  }
}

/**
 * What is left of a body whose delivery is about to be answered. After a long rest the connection ends; a short one is
 * read, which keeps the connection; a stream of HTTP/2 is closed.
 */
type Drain = 'none' | 'short' | 'long' | 'stream'

/** Returns what the sender may still be sending. */
export function drainOf({ outcome }: Acknowledgement, request: IncomingMessage): Drain {
  // Requests of test libraries have no `complete`.
  if (request.complete !== false || request.readableEnded) return 'none'
  if (request.httpVersionMajor === 2) return 'stream'
  // A sender that was too slow once won't be waited for again.
  if (outcome === 'incomplete') return 'long'
  return Number(request.headers['content-length']) <= keepAliveBytes ? 'short' : 'long'
}

/** Ends the response after the rest of the body: a connection that ends first is reset, and the answer may be lost. */
function endAfterDrain(body: string, request: IncomingMessage, response: ServerResponse): void {
  response.write(body)
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

/** Stops reading the rest of a body that the response does not wait for, some time after its answer. */
export function limitDrain(drain: 'short' | 'stream', request: IncomingMessage, response: ServerResponse): void {
  if (drain === 'stream') {
    const { stream } = request as unknown as Http2ServerRequest
    // NO_ERROR, the default code: the answer is complete, and the sender can stop.
    response.once('finish', () => stream.close())
    return
  }
  response.once('finish', () => {
    const timer = setTimeout(() => {
      if (!request.complete) request.destroy()
    }, drainMs)
    request.once('end', () => clearTimeout(timer))
  })
}
