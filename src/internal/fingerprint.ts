/** A 32-bit hash (FNV-1a) of text. Fast, and not secure. */
export function hashOf(text: string, seed = 0): number {
  let hash = seed ^ 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  // Murmur's finalizer: sums of plain FNV hashes collide.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** Hashes JSON, whatever the order of its fields. An undefined field counts as absent. The depth must be limited. */
export function fingerprint(value: unknown, seed = 0): number {
  if (typeof value === 'string') return hashOf(value, seed)
  if (typeof value !== 'object' || value === null) return hashOf(String(value), seed + 1)
  if (Array.isArray(value)) return value.reduce<number>((hash, each) => fingerprint(each, hash), seed + 2)
  let sum = seed + 3
  for (const name in value) {
    const each = (value as Record<string, unknown>)[name]
    if (each !== undefined) sum = (sum + fingerprint(each, hashOf(name, seed))) | 0
  }
  return hashOf('', sum)
}
