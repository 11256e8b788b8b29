/** `true` on Workers: when a request ends, its timers never fire and its promises never settle. */
export const requestsEndWork =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'
