import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Session } from 'node:http2'

/** Open HTTP/2 sessions by server. Node tracks them itself only from 24 on. */
const sessionsOf = new WeakMap<object, Set<ServerHttp2Session>>()

/** Tracks this request's HTTP/2 session, and every later session of its server. */
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

/** Closes gracefully: no new requests, those in flight finish. */
export function closeSessions(server: object): void {
  for (const session of sessionsOf.get(server) ?? []) session.close()
}

/** Destroys the sessions left, cutting off their requests. */
export function destroySessions(server: object): void {
  for (const session of sessionsOf.get(server) ?? []) session.destroy()
}
