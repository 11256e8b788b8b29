import type { Server } from 'node:http'
import { closeSessions } from './http2-sessions.ts'

/** The interval at which idle connections are closed, in ms. */
const intervalMs = 20

/**
 * Closes the connections of a closing server as soon as they are idle. A connection that is kept alive becomes idle
 * after its last answer. It would hold up the server for as long as the sender keeps it.
 * @returns stops it
 */
export function closeIdleConnections(server: Partial<Pick<Server, 'closeIdleConnections'>>): () => void {
  const closeIdle = () => {
    server.closeIdleConnections?.()
    closeSessions(server)
  }
  closeIdle()
  const timer = setInterval(closeIdle, intervalMs)
  return () => clearInterval(timer)
}
