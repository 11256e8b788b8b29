import type { Answer } from './attempt.ts'

/** A pause that ends early, without an error, when the signal is aborted. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>

export const pause: Pause = (ms, signal) =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
    if (signal?.aborted) end()
  })

/** How long an answer asks to wait, in ms, if it does: Retry-After in seconds or as a date, or the service's own header. */
export function askedWaitMs({ status, headers }: Pick<Answer, 'status' | 'headers'>): number | undefined {
  // The service's own header comes with every answer; only in a refusal for the rate does it say anything.
  const asked = headers.get('retry-after') ?? (status === 429 ? headers.get('x-ratelimit-retry-after') : null)
  if (asked === null) return undefined
  if (/^\d+(\.\d+)?$/.test(asked)) return Number(asked) * 1_000
  // By its weekday, since Date.parse finds dates in '-5' and 'soon 5', too.
  const ms = /^(mon|tue|wed|thu|fri|sat|sun)/i.test(asked) ? Date.parse(asked) - Date.now() : Number.NaN
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}
