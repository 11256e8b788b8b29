import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import { WebhookError } from '../../errors.ts'

type Fetch = Parameters<typeof getRequestListener>[0]

/** A server that listens, on 127.0.0.1 only. */
export interface ListeningServer {
  readonly port: number
  /** To be called at once: what comes before has no answer. */
  serve(fetch: Fetch): void
  /** Ends every connection, those that are in the middle of something too. */
  close(): Promise<void>
}

/**
 * Listens before it knows what to answer, for that depends on the port.
 * @throws WebhookError `invalid_option` when the port cannot be had
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
      // What has just come to its end, such as a stream of events, is still written.
      await turn()
      server.closeAllConnections()
      await closed
    },
  }
}

function explain(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return `port ${port} is taken; give another one, or 0 for any that is free`
  if (code === 'EACCES') return `port ${port} is not open to this user; give one from 1024, or 0 for any that is free`
  return `port ${port} cannot be listened on: ${message}`
}
