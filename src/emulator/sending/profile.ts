import type { DeliveryFailure } from './sending.ts'

/** The names of the profiles: `documented` and `observed`. */
export const profiles = ['documented', 'observed'] as const

/** The behaviour of the API and the sender: as the service documents it, or as the running service was observed to behave. */
export type Profile = (typeof profiles)[number]

/** The time limit of a delivery, including its answer, in ms. */
export const deliveryTimeoutMs = 3_000

/** The time limit of the test delivery, including its answer, in ms. */
export const testTimeoutMs = 1_000

const observedDelaysMs = [30_000, 60_000, 120_000, 240_000, 480_000, 960_000]

/**
 * Returns the pause before the next delivery of an event, in ms, or `undefined` when the event is given up.
 *
 * - `documented`: up to 3 retries, 3 s apart, after any failure.
 * - `observed`: no retry after an answer. Without an answer there are six retries, after 30 s and then 1, 2, 4, 8 and
 *   16 minutes.
 *
 * @param attempt the attempt that failed, from 1
 */
export function retryDelay(profile: Profile, attempt: number, { reason }: DeliveryFailure): number | undefined {
  if (profile === 'documented') return attempt <= 3 ? 3_000 : undefined
  return reason === 'status' ? undefined : observedDelaysMs[attempt - 1]
}
