import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Receiver } from '../src/index.ts'
import { nodeHandler } from './node.ts'
import { checkReceiver } from './shared/check-receiver.ts'

/**
 * Mounts a receiver in Express 5 or 4, with `app.post`, `app.use` or under a router.
 *
 * ```ts
 * app.post('/webhooks/media', expressHandler(receiver))
 * app.use(express.json()) // body parsers come after it
 * ```
 *
 * Reads the body itself, or uses the bytes of `express.raw`, `express.text` or `req.rawBody`. Behind `express.json()`
 * only verifiers that need no bytes work; with any other, deliveries are answered 500 and the log has the fix. Typed
 * with Node's request and response, so it fits both versions of Express.
 * @throws WebhookError `invalid_option` without a receiver
 */
export function expressHandler(
  receiver: Pick<Receiver, 'receive'>,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  checkReceiver('expressHandler', receiver)
  return nodeHandler(receiver)
}
