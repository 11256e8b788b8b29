/** `true` on Workers, where nothing that a request began outlives it: its timers never fire, its promises never settle. */
export const requestsEndWork =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'
