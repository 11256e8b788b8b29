import type { HonoRequest, MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'

/**
 * Refuses whatever another origin's page sends, for the emulator's own interface and its page ask for no credentials:
 * requests under a foreign host name (DNS rebinding), from another origin, or from another site. No answer carries a
 * CORS header, so a browser that says nothing of where a request comes from shows its answer to nobody.
 * @param port on which the emulator listens
 */
export function sameOrigin(port: number): MiddlewareHandler {
  const hosts = ['127.0.0.1', 'localhost', '[::1]'].map((name) => new URL(`http://${name}:${port}`).host)
  return async ({ req }, next) => {
    const host = req.header('host')?.toLowerCase() ?? ''
    if (!hosts.includes(host)) {
      throw new HTTPException(403, { message: `the host has to be 127.0.0.1:${port} or localhost:${port}` })
    }
    const origin = req.header('origin')
    if (origin !== undefined && origin !== `http://${host}`) {
      throw new HTTPException(403, { message: 'pages of another origin are refused' })
    }
    if (/^(cross|same)-site$/.test(req.header('sec-fetch-site') ?? '') && !opensThePage(req)) {
      throw new HTTPException(403, { message: 'pages of another site are refused' })
    }
    return next()
  }
}

// A link may lead to the page from anywhere: it changes nothing, and whoever holds the link cannot look into the page.
function opensThePage(req: HonoRequest): boolean {
  const opens = req.header('sec-fetch-mode') === 'navigate' && req.header('sec-fetch-dest') === 'document'
  return opens && req.method === 'GET' && req.path === '/'
}

const headers = {
  'Content-Security-Policy':
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  // Not no-referrer: with that, browsers send the page's own forms with `Origin: null`, as if they were another's.
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

/** Keeps the page to itself: nothing of another origin in it, nor it in another, and no address told to others. */
export const securityHeaders: MiddlewareHandler = async (context, next) => {
  await next()
  for (const [name, value] of Object.entries(headers)) context.header(name, value)
}
