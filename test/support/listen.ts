import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

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
