/**
 * Hashes a media id to 53 bits, which every driver reads as a number. A collision is harmless: both media items share one
 * lane. cyrb53, since Workers offer others only asynchronously.
 */
export function hashMedia(mediaId: string): string {
  let [low, high] = [0xdeadbeef, 0x41c6ce57]
  for (let i = 0; i < mediaId.length; i++) {
    const unit = mediaId.charCodeAt(i)
    low = Math.imul(low ^ unit, 2_654_435_761)
    high = Math.imul(high ^ unit, 1_597_334_677)
  }
  const mix = (a: number, b: number) =>
    Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909)
  const mixedLow = mix(low, high)
  const mixedHigh = mix(high, mixedLow)
  return `${(mixedHigh & 0x1fffff) * 2 ** 32 + (mixedLow >>> 0)}`
}
