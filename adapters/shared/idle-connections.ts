import type { Server } from 'node:http'

/** The interval at which idle connections are closed, in ms. */
const intervalMs = 20

/**
 * Closes the connections of a closing server as soon as they are idle: one that is kept alive becomes idle when its last
 * request has been answered, and would hold up the server for as long as the sender keeps it.
 * @returns stops it
 */
export function closeIdleConnections(server: Partial<Pick<Server, 'closeIdleConnections'>>): () => void {
  server.closeIdleConnections?.()
  const timer = setInterval(() => server.closeIdleConnections?.(), intervalMs)
  return () => clearInterval(timer)
}
