/** Makes a function that returns numbers from 0 to 1, without 1: the same ones for the same seed. It is mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  // Neighbouring seeds begin with similar numbers.
  for (let i = 0; i < 8; i++) next()
  return next
}

/** Returns one of the items. */
export const oneOf = <T>(random: () => number, items: readonly T[]): T =>
  items[Math.floor(random() * items.length)] as T
