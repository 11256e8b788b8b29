import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A server that listens on 127.0.0.1. */
export interface Listening {
  readonly server: Server
  readonly origin: string
  /** Ends its connections and closes it. */
  close(): Promise<void>
}

/** Listens with a listener of node:http on 127.0.0.1, on a free port unless one is given. */
export async function listen(listener: RequestListener, port = 0): Promise<Listening> {
  // Node then throws on a body that HTTP does not allow, such as that of an answer to HEAD.
  const server = createServer({ rejectNonStandardBodyWrites: true }, listener).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    server,
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      if (!server.listening) return
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Listens until the end of the test. */
export async function listenUntilEnd(listener: RequestListener): Promise<Listening> {
  const listening = await listen(listener)
  onTestFinished(listening.close)
  return listening
}

/** Serves a listener until the end of the test. Resolves with its origin. */
export const serve = async (listener: RequestListener) => (await listenUntilEnd(listener)).origin

/** Serves a listener until the end of the test. Resolves with the URL of its webhook. */
export const serveWebhook = async (listener: RequestListener) => `${await serve(listener)}/webhooks/media`
