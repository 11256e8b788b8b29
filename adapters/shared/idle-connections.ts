import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { nextTurn, sleep } from '../../src/internal/timers.ts'
import { closeSessions } from './http2-sessions.ts'

/** Interval between sweeps (ms). */
const intervalMs = 20

/** Grace period for a connection's first byte (ms). Until then Node counts it as busy. */
const firstByteMs = 500

/** Time for senders that are about to use a kept-alive connection (ms). */
const lingerMs = 100

/**
 * Makes every answer from now on say `Connection: close`, and waits at most `maxMs` for the senders that would else send
 * into a connection that is just being closed. HTTP/2 has GOAWAY for it.
 */
export async function announceClose(server: object, maxMs = lingerMs): Promise<void> {
  const end = (response: ServerResponse) => {
    response.shouldKeepAlive = false
  }
  const { prependListener } = server as Partial<NodeJS.EventEmitter>
  prependListener?.call(server, 'request', (_request: unknown, response: ServerResponse) => end(response))
  for (const { _httpMessage: response } of findSockets(server) ?? []) if (response) end(response)
  await sleep(Math.min(maxMs, lingerMs))
  // What has arrived in a busy process is read first.
  await nextTurn()
}

/**
 * Closes a closing server's connections as they go idle. Otherwise keep-alive senders hold it open.
 * @param onNoHttp called once no HTTP connection is left; Node can't close a socket stuck in its TLS handshake
 * @returns stops the sweeps
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
    const sockets = findSockets(server)
    for (const socket of sockets ?? []) if (socket.bytesRead === 0) socket.destroy()
    if (sockets?.length === 0) onNoHttp()
  }
  closeIdle()
  const timer = setInterval(closeIdle, intervalMs)
  return () => clearInterval(timer)
}

/** Node keeps the response that a socket waits for. */
type HttpSocket = Socket & { readonly _httpMessage?: ServerResponse | null }

/** The sockets of an HTTP/1 server, from Node's private connection list. `undefined` if there is no such list. */
function findSockets(server: object): readonly HttpSocket[] | undefined {
  // An HTTP/2 server's list lacks its sessions.
  if ('updateSettings' in server) return undefined
  const symbol = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'http.server.connections',
  )
  if (symbol === undefined) return undefined
  const list = (server as Record<symbol, { all?(): readonly { readonly socket?: HttpSocket | null }[] } | undefined>)[
    symbol
  ]
  return list?.all?.().flatMap(({ socket }) => socket ?? [])
}
