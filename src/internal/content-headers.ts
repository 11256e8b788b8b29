import { encoder } from './utf8.ts'

/** The headers that tell what a text is, and its length in bytes. */
export const contentHeaders = (type: string, body: string): Record<string, string> => ({
  'content-type': type,
  'content-length': String(encoder.encode(body).byteLength),
})
