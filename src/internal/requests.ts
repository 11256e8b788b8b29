/**
 * `true` on Workers, which tie all work to the request in which it was started. When that request ends, its timers
 * never fire and its promises never settle.
 */
export const requestsEndWork =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'

/** Maximum time for which Workers keep a request alive after its answer, in ms. */
export const requestLifeMs = 30_000
