import type { HonoRequest, MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { securityHeaders } from '../../../internal/page/security-headers.ts'

/**
 * Rejects requests from foreign pages: the emulator's own interface and its page need no credentials. Rejected are
 * foreign host names (DNS rebinding), other origins and other sites. Without CORS headers, a page can't read an answer
 * even if its browser doesn't say where the request comes from.
 * @param port the emulator's port
 */
export function sameOrigin(port: number): MiddlewareHandler {
  const hosts = ['127.0.0.1', 'localhost', '[::1]'].map((name) => new URL(`http://${name}:${port}`).host)
  return async ({ req }, next) => {
    const host = req.header('host')?.toLowerCase() ?? ''
    if (!hosts.includes(host)) {
      throw new HTTPException(403, { message: `the host must be 127.0.0.1:${port} or localhost:${port}` })
    }
    const origin = req.header('origin')
    if (origin !== undefined && origin !== `http://${host}`) {
      throw new HTTPException(403, { message: 'requests from pages of another origin are rejected' })
    }
    if (/^(cross|same)-site$/.test(req.header('sec-fetch-site') ?? '') && !opensThePage(req)) {
      throw new HTTPException(403, { message: 'requests from pages of another site are rejected' })
    }
    return next()
  }
}

// Any site may link to the page: opening it changes nothing, and the linking site can't read it.
function opensThePage(req: HonoRequest): boolean {
  const opens = req.header('sec-fetch-mode') === 'navigate' && req.header('sec-fetch-dest') === 'document'
  return opens && req.method === 'GET' && req.path === '/'
}

export const isolatePage: MiddlewareHandler = async (context, next) => {
  await next()
  for (const [name, value] of Object.entries(securityHeaders)) context.header(name, value)
}
