import { securityHeaders } from '../../../internal/page/security-headers.ts'

/** Adds the headers of every response. `no-store`, because pages hold payloads. */
export const headed = (headers: Readonly<Record<string, string>>): Record<string, string> => ({
  ...securityHeaders,
  'Cache-Control': 'no-store',
  ...headers,
})

export const linesType = 'application/x-ndjson; charset=utf-8'

/** A plain-text response, for somebody who may not even see the style sheet. */
export const plain = (status: number, message: string): Response =>
  new Response(`${message}\n`, { status, headers: headed({ 'content-type': 'text/plain; charset=utf-8' }) })
