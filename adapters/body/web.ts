import type { Delivery } from '../../src/index.ts'

/** The body of a `Request`, unless somebody has read it, or is reading it, and left nothing. */
export function unreadBody(request: Request): Delivery['body'] {
  if (request.bodyUsed || request.body?.locked) return { parsed: undefined }
  return (limit) => readStream(request.body, limit)
}

async function readStream(stream: Request['body'], limit: number): Promise<Uint8Array | 'too_large' | 'incomplete'> {
  if (stream === null) return new Uint8Array()
  const reader = stream.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return joined(chunks, size)
      size += value.byteLength
      chunks.push(value)
      if (size > limit) {
        reader.cancel().catch(() => {})
        return 'too_large'
      }
    }
  } catch {
    return 'incomplete'
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  if (chunks.length === 1) return chunks[0] as Uint8Array
  const all = new Uint8Array(size)
  let offset = 0
  for (const chunk of chunks) {
    all.set(chunk, offset)
    offset += chunk.byteLength
  }
  return all
}
