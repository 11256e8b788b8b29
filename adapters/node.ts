import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Acknowledgement, Receiver } from '../src/index.ts'
import { toDelivery } from './body/node.ts'

/**
 * Mounts a receiver in a `node:http` server, or in anything that hands out its requests and responses.
 *
 * ```ts
 * createServer(nodeHandler(receiver)).listen(3000)
 * ```
 * @returns a function that resolves once the delivery is acknowledged, and never rejects
 */
export function nodeHandler(receiver: Pick<Receiver, 'receive'>) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const acknowledgement = await receiver.receive(toDelivery(request))
    write(acknowledgement, request, response)
  }
}

/** How long a sender may go on with an oversized body before the connection ends, in ms. */
const lingerMs = 500

function write({ status, headers, body }: Acknowledgement, request: IncomingMessage, response: ServerResponse): void {
  if (response.headersSent || response.destroyed) return
  // Node throws away what was not read of any other body, and the connection stays usable.
  if (status !== 413 || request.complete) response.writeHead(status, headers).end(body)
  else {
    response.writeHead(status, { ...headers, connection: 'close' }).write(body)
    endAfterBody(request, response)
  }
}

// A connection that ends while the sender is sending is reset, and the sender may never see the answer.
function endAfterBody(request: IncomingMessage, response: ServerResponse): void {
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, lingerMs)
  request.once('end', end).once('close', end).resume()
}
