import type { DeliveryFailure } from './sending.ts'

export const profiles = ['documented', 'observed'] as const

/** How the API and the sender behave: as documented, or as the running service was observed to. */
export type Profile = (typeof profiles)[number]

/** Time limit of a delivery, including its answer (ms). */
export const deliveryTimeoutMs = 3_000

/** Time limit of a test delivery, including its answer (ms). */
export const testTimeoutMs = 1_000

const observedDelaysMs = [30_000, 60_000, 120_000, 240_000, 480_000, 960_000]

/**
 * Returns the delay before an event's next delivery, in ms, or `undefined` to give up.
 *
 * - `documented`: up to 3 retries, 3 s apart, after any failure.
 * - `observed`: no retry after an answer. Otherwise six, after 30 s and then 1, 2, 4, 8 and 16 minutes.
 *
 * @param attempt the failed attempt, from 1
 */
export function retryDelay(profile: Profile, attempt: number, { reason }: DeliveryFailure): number | undefined {
  if (profile === 'documented') return attempt <= 3 ? 3_000 : undefined
  return reason === 'status' ? undefined : observedDelaysMs[attempt - 1]
}
