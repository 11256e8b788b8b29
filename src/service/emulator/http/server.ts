import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import { WebhookError } from '../../../errors.ts'

type Fetch = Parameters<typeof getRequestListener>[0]

export interface ListeningServer {
  readonly port: number
  /** Sets the request handler. Call it at once: earlier requests get no answer. */
  serve(fetch: Fetch): void
  /** Closes all connections, including those with a request in progress. */
  close(): Promise<void>
}

/**
 * Listens before a handler is set, because the handler needs the port.
 * @throws WebhookError `invalid_option` if the port is not available
 */
export async function listen(port: number): Promise<ListeningServer> {
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new WebhookError('invalid_option', `createEmulator: ${explain(port, error)}`, { cause: error })
  })
  return {
    port: (server.address() as AddressInfo).port,
    serve: (fetch) => server.on('request', getRequestListener(fetch, { overrideGlobalObjects: false })),
    async close() {
      const closed = once(server, 'close')
      server.close()
      // Flush answers that have just ended, such as an event stream.
      await turn()
      server.closeAllConnections()
      await closed
    },
  }
}

function explain(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return `port ${port} is in use: choose another one, or 0 for a free one`
  if (code === 'EACCES') return `port ${port} needs administrator rights: choose one from 1024, or 0 for a free one`
  return `cannot listen on port ${port}: ${message}`
}
