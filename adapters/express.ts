import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Receiver } from '../src/index.ts'
import { nodeHandler } from './node.ts'

/**
 * Mounts a receiver in Express 5 or 4, with `app.post`, `app.use` or under a router.
 *
 * ```ts
 * app.post('/webhooks/media', expressHandler(receiver))
 * app.use(express.json()) // parsers of the whole body come after it
 * ```
 *
 * It reads the body itself, or takes the bytes that `express.raw`, `express.text` or a `req.rawBody` left. Behind
 * `express.json()` only verifiers that need no bytes work; the others answer 500 and log the mend.
 *
 * Its type names what both versions of Express pass on, so that it fits the types of either.
 */
export function expressHandler(
  receiver: Pick<Receiver, 'receive'>,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return nodeHandler(receiver)
}
