import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Acknowledgement } from '../../src/index.ts'

/** The time for which a sender may continue to send a rejected body, in ms. After that, the connection ends. */
const lingerMs = 500

/** Writes the acknowledgement of a delivery, unless something else has answered it. */
export function acknowledge(
  acknowledgement: Acknowledgement,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { status, headers, body } = acknowledgement
  if (response.headersSent || response.destroyed) return
  if (isStillSending(acknowledgement, request)) {
    response.writeHead(status, { ...headers, connection: 'close' }).write(body)
    endAfterBody(request, response)
  } else {
    // `end(body)` would write two pieces, the second of them empty: one piece costs 2 % less CPU per delivery. The
    // responses of some test libraries have no `cork`.
    response.cork?.()
    response.writeHead(status, headers).write(body)
    response.uncork?.()
    response.end()
  }
}

/**
 * Returns true if the sender may still be sending a body that was rejected. If the connection ended before that, it
 * would be reset, and the sender might never see the answer.
 */
export function isStillSending({ outcome }: Acknowledgement, request: IncomingMessage): boolean {
  // Node discards the unread part of any other body, and the connection stays usable. HTTP/2 has a stream for each
  // request.
  const wasCut = outcome === 'too_large' || outcome === 'incomplete'
  return wasCut && !request.complete && request.httpVersionMajor === 1
}

function endAfterBody(request: IncomingMessage, response: ServerResponse): void {
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, lingerMs)
  request.once('end', end).once('close', end).resume()
}
