/** Decompresses to at most `limit` bytes. Whatever the bytes claim, no more than a chunk beyond them is in memory. */
export async function gunzip(bytes: Uint8Array, limit: number): Promise<Uint8Array | 'too_large' | 'invalid'> {
  const reader = new Blob([bytes as Uint8Array<ArrayBuffer>])
    .stream()
    .pipeThrough(new DecompressionStream('gzip'))
    .getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      chunks.push(value)
      size += value.byteLength
      if (size > limit) return 'too_large'
    }
  } catch {
    return 'invalid'
  } finally {
    reader.cancel().catch(() => {})
  }
  const all = new Uint8Array(size)
  let offset = 0
  for (const chunk of chunks) {
    all.set(chunk, offset)
    offset += chunk.byteLength
  }
  return all
}
