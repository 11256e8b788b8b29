import { timestamp } from '../../../testing/payload.ts'

/** Returns the time in nanoseconds since 1970. */
export type Clock = () => bigint

let latest = 0n

/**
 * The machine's clock, strictly increasing so that records sort by creation. Accurate to the millisecond; the digits
 * below only fill the timestamps.
 */
export const systemClock: Clock = () => {
  const now = BigInt(Date.now()) * 1_000_000n + (process.hrtime.bigint() % 1_000_000n)
  latest = now > latest ? now : latest + 1n
  return latest
}

/** Converts to a `Date`, cut to milliseconds. */
export const toDate = (nanoseconds: bigint): Date => new Date(Number(nanoseconds / 1_000_000n))

/** Formats a time for the API: ISO 8601 in UTC with exactly six fractional digits, as documented. */
export function apiTimestamp(nanoseconds: bigint): string {
  const seconds = timestamp(nanoseconds - (nanoseconds % 1_000_000_000n)).slice(0, -1)
  const microseconds = (nanoseconds % 1_000_000_000n) / 1_000n
  return `${seconds}.${microseconds.toString().padStart(6, '0')}Z`
}
