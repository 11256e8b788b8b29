import * as z from 'zod'
import { longestWaitMs } from '../../internal/timers.ts'
import { sendingStates } from '../sending/sending.ts'
import { digits, oneOf, text } from '../shared/input.ts'

const page = {
  offset: digits(0, Number.MAX_SAFE_INTEGER).default(0),
  limit: digits(1, 100).default(25),
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
export const settledQuery = z.strictObject({ timeout_ms: digits(1, longestWaitMs).optional() })
