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

function write({ status, headers, body }: Acknowledgement, request: IncomingMessage, response: ServerResponse): void {
  if (response.headersSent || response.destroyed) return
  const length = { 'content-length': Buffer.byteLength(body) }
  // What was not read of an oversized body never is: the connection ends with the answer.
  const ending = request.complete ? undefined : { connection: 'close' }
  response.writeHead(status, { ...headers, ...length, ...ending }).end(body)
}
