import * as z from 'zod'
import { longestWaitMs } from '../../timers.ts'
import { oneOf, text } from '../input.ts'
import { sendingStates } from '../sending/sending.ts'

const whole = (min: number, max: number) =>
  z
    .string()
    .transform((text) => (/^\d{1,10}$/.test(text) ? Number(text) : Number.NaN))
    .refine((value) => value >= min && value <= max, {
      error: `has to be a whole number from ${min} to ${max}`,
    })

const page = {
  offset: whole(0, 1_000_000_000).default(0),
  limit: whole(1, 100).default(25),
}

/** Which media to list. */
export const mediaQuery = z.strictObject(page)

/** Which sendings to list. */
export const sendingsQuery = z.strictObject({
  webhook_id: text.optional(),
  media_id: text.optional(),
  state: oneOf(sendingStates).optional(),
  ...page,
})

export type SendingsQuery = z.output<typeof sendingsQuery>

/** How long to wait. */
export const settledQuery = z.strictObject({ timeout_ms: whole(1, longestWaitMs).optional() })
