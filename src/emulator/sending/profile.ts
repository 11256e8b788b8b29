import type { DeliveryFailure } from './sending.ts'

/** The ways in which events can be sent. */
export const profiles = ['documented', 'observed'] as const

/** One of {@link profiles}. */
export type Profile = (typeof profiles)[number]

/** How long a delivery may take, its answer included, in ms. */
export const deliveryTimeoutMs = 3_000

/** The same for the test delivery. */
export const testTimeoutMs = 1_000

const observedPausesMs = [30_000, 60_000, 120_000, 240_000, 480_000, 960_000]

/**
 * The pause before the next delivery of an event, in ms, or `undefined` when it is given up.
 *
 * - `documented`: up to 3 retries, 3 s apart, whatever went wrong.
 * - `observed` (seen in the running service): after an answer there is no retry; without one there are six, after
 *   30 s and then 1, 2, 4, 8 and 16 minutes.
 *
 * @param attempt of the delivery that failed, from 1
 */
export function retryPause(profile: Profile, attempt: number, { reason }: DeliveryFailure): number | undefined {
  if (profile === 'documented') return attempt <= 3 ? 3_000 : undefined
  return reason === 'status' ? undefined : observedPausesMs[attempt - 1]
}
