import { timestamp } from '../../testing/payload.ts'

/** Tells the time in nanoseconds since 1970. */
export type Clock = () => bigint

let latest = 0n

/**
 * The machine's clock, except that it never goes back: what was created later sorts later. It gives milliseconds; the
 * rest is there to be seen in the timestamps.
 */
export const systemClock: Clock = () => {
  const now = BigInt(Date.now()) * 1_000_000n + (process.hrtime.bigint() % 1_000_000n)
  latest = now > latest ? now : latest + 1n
  return latest
}

/** A moment to the millisecond. */
export const dateOf = (nanoseconds: bigint): Date => new Date(Number(nanoseconds / 1_000_000n))

/** A moment as the API writes it: ISO 8601, UTC, always with six fractional digits, as the service documents it. */
export function apiTimestamp(nanoseconds: bigint): string {
  const seconds = timestamp(nanoseconds - (nanoseconds % 1_000_000_000n)).slice(0, -1)
  const microseconds = (nanoseconds % 1_000_000_000n) / 1_000n
  return `${seconds}.${microseconds.toString().padStart(6, '0')}Z`
}
