import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import express from 'express'
import { expressHandler } from '../adapters/express.ts'
import { listenOn } from '../src/cli/shared/serving.ts'
import type { Receiver } from '../src/index.ts'
import { tokenRule } from '../src/operate/dashboard/access/local-only.ts'
import { dashboard } from '../src/operate/dashboard/index.ts'

const path = '/webhooks/media'

/** The HTTP server of the demo's receiver. */
export interface Server {
  /** The URL for deliveries, without a secret. */
  readonly url: URL
  /** The URL of the dashboard, with the token that opens it. */
  readonly dashboardUrl: string
  /** Answers the next delivery with 503 before the receiver sees it, as a load balancer does during a deployment. */
  rejectNext(): void
  /** Stops listening. Deliveries in progress have 1 s to be answered. */
  close(): Promise<void>
}

/**
 * Mounts the receiver and its dashboard in an Express application on 127.0.0.1.
 * @param port 0 chooses a free port
 * @param onRejected called for each delivery rejected before the receiver saw it
 */
export async function startServer(receiver: Receiver, port: number, onRejected: () => void): Promise<Server> {
  let toReject = 0
  const token = randomUUID()
  const app = express()
  app.use('/inbox', dashboard(receiver, { path: '/inbox', authorize: tokenRule(token) }).node)
  app.use((_request, response, next) => {
    if (toReject === 0) return next()
    toReject -= 1
    response.status(503).set('Retry-After', '3').end()
    onRejected()
  })
  app.post(path, expressHandler(receiver))

  const server = createServer(app)
  const origin = await listenOn(server, port)
  return {
    url: new URL(path, origin),
    dashboardUrl: `${origin}/inbox?token=${token}`,
    rejectNext() {
      toReject += 1
    },
    async close() {
      const forced = setTimeout(() => server.closeAllConnections(), 1_000)
      server.close()
      await once(server, 'close')
      clearTimeout(forced)
    },
  }
}
