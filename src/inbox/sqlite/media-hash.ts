/**
 * Hashes a media id to a number, for an index that is smaller than one of texts. Two ids can have the same number, so
 * whoever looks one up compares the ids too. FNV-1a, since Workers hash asynchronously only.
 */
export function hashMedia(mediaId: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < mediaId.length; i++) hash = Math.imul(hash ^ mediaId.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
