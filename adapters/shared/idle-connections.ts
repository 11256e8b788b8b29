import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { closeSessions } from './http2-sessions.ts'

/** The interval at which idle connections are closed, in ms. */
const intervalMs = 20

/** Grace period for the first byte of a connection (ms). Node counts one that has sent nothing as busy. */
const firstByteMs = 500

/**
 * Closes the connections of a closing server as soon as they are idle. A connection that is kept alive becomes idle
 * after its last answer. It would hold up the server for as long as the sender keeps it.
 * @param onNoHttp called while no HTTP connection is left. Node offers no way to close a socket that never finished its TLS
 * handshake
 * @returns stops it
 */
export function closeIdleConnections(
  server: Partial<Pick<Server, 'closeIdleConnections'>>,
  onNoHttp: () => void = () => {},
): () => void {
  const startedAt = performance.now()
  const closeIdle = () => {
    server.closeIdleConnections?.()
    closeSessions(server)
    if (performance.now() - startedAt < firstByteMs) return
    const sockets = socketsOf(server)
    for (const socket of sockets ?? []) if (socket.bytesRead === 0) socket.destroy()
    if (sockets?.length === 0) onNoHttp()
  }
  closeIdle()
  const timer = setInterval(closeIdle, intervalMs)
  return () => clearInterval(timer)
}

/** The connections of a server of node:http or node:https, which only a private list tells. `undefined`: it has none. */
function socketsOf(server: object): readonly Socket[] | undefined {
  // The list of an HTTP/2 server lacks its sessions.
  if ('updateSettings' in server) return undefined
  const symbol = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'http.server.connections',
  )
  if (symbol === undefined) return undefined
  const list = (server as Record<symbol, { all?(): readonly { readonly socket?: Socket | null }[] } | undefined>)[
    symbol
  ]
  return list?.all?.().flatMap(({ socket }) => socket ?? [])
}
