import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Session } from 'node:http2'

/** The open sessions of each server that has had a request over HTTP/2. Before Node 24, a server does not know them. */
const sessionsOf = new WeakMap<object, Set<ServerHttp2Session>>()

/** Remembers the session of a request over HTTP/2, and each session that its server opens later. */
export function rememberSession(request: IncomingMessage): void {
  const { session } = (request as unknown as Partial<Http2ServerRequest>).stream ?? {}
  const { server } = request.socket as { server?: NodeJS.EventEmitter }
  if (session === undefined || server === undefined) return
  const open = sessionsOf.get(server) ?? new Set()
  const remember = (each: ServerHttp2Session) => {
    if (open.has(each)) return
    open.add(each)
    each.once('close', () => open.delete(each))
  }
  if (!sessionsOf.has(server)) server.on('session', remember)
  sessionsOf.set(server, open)
  remember(session as ServerHttp2Session)
}

/** Closes the sessions of a server: each takes no more requests, and ends once those in flight are answered. */
export function closeSessions(server: object): void {
  for (const session of sessionsOf.get(server) ?? []) session.close()
}

/** Ends the sessions that are left, and cuts off their requests. */
export function destroySessions(server: object): void {
  for (const session of sessionsOf.get(server) ?? []) session.destroy()
}
