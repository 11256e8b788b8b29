import { securityHeaders } from '../../page/security-headers.ts'

/** Adds the headers that every answer has. No cache may keep one: it may hold a payload. */
export const headed = (headers: Readonly<Record<string, string>>): Record<string, string> => ({
  ...securityHeaders,
  'Cache-Control': 'no-store',
  ...headers,
})

/** The type of an answer that is sent line by line, each one a JSON object. */
export const linesType = 'application/x-ndjson; charset=utf-8'

/** Makes an answer for a reader who may see nothing, not even the style of the page. */
export const plain = (status: number, message: string): Response =>
  new Response(`${message}\n`, { status, headers: headed({ 'content-type': 'text/plain; charset=utf-8' }) })
