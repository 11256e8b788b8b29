import type { Delivery } from '../../src/index.ts'
import { Bytes } from './bytes.ts'

/** The body of a `Request`, unless somebody has read it, or is reading it, and left nothing. */
export function unreadBody(request: Request): Delivery['body'] {
  if (request.bodyUsed || request.body?.locked) return { parsed: undefined }
  return (limit) => readStream(request.body, limit)
}

async function readStream(stream: Request['body'], limit: number): Promise<Uint8Array | 'too_large' | 'incomplete'> {
  if (stream === null) return new Uint8Array()
  const reader = stream.getReader()
  const bytes = new Bytes()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return bytes.all()
      if (bytes.size + value.byteLength > limit) {
        reader.cancel().catch(() => {})
        return 'too_large'
      }
      bytes.add(value)
    }
  } catch {
    return 'incomplete'
  }
}
