import { once } from 'node:events'
import { createServer } from 'node:http'
import express from 'express'
import { expressHandler } from '../adapters/express.ts'
import { listenOn } from '../src/cli/shared/serving.ts'
import type { Receiver } from '../src/index.ts'

const path = '/webhooks/media'

export interface Server {
  /** Where deliveries go, without a secret. */
  readonly url: URL
  /** Lets the next delivery be answered 503 before the receiver sees it, as a load balancer does in a deployment. */
  refuseNext(): void
  /** Stops listening; deliveries on their way have another second to be answered. */
  close(): Promise<void>
}

/**
 * Mounts the receiver in an Express application on 127.0.0.1.
 * @param port 0 for a free one
 * @param onRefused told of each delivery that was answered in front of the receiver
 */
export async function startServer(receiver: Receiver, port: number, onRefused: () => void): Promise<Server> {
  let refusals = 0
  const app = express()
  app.use((_request, response, next) => {
    if (refusals === 0) return next()
    refusals -= 1
    response.status(503).set('Retry-After', '3').end()
    onRefused()
  })
  app.post(path, expressHandler(receiver))

  const server = createServer(app)
  return {
    url: new URL(path, await listenOn(server, port)),
    refuseNext() {
      refusals += 1
    },
    async close() {
      const forced = setTimeout(() => server.closeAllConnections(), 1_000)
      server.close()
      await once(server, 'close')
      clearTimeout(forced)
    },
  }
}
