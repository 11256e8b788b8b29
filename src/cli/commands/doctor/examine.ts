import { acknowledges, acknowledgesEscapes, stillAnswers, takesBurst } from './acknowledges.ts'
import { handlesDuplicates } from './duplicates.ts'
import type { Endpoint } from './endpoint.ts'
import { type DoctorCheck, type Finding, wasAccepted } from './finding.ts'
import { rejectsForgeries } from './forgeries.ts'
import { rejectsBadDeliveries } from './rejections.ts'

export const maxRequests = 52

const checks: readonly DoctorCheck[] = [
  handlesDuplicates,
  acknowledgesEscapes,
  rejectsForgeries,
  rejectsBadDeliveries,
  takesBurst,
  stillAnswers,
]

/** Tests an endpoint as the service and as a forger would. Yields findings as they come. */
export async function* examine(endpoint: Endpoint): AsyncIterable<Finding> {
  const { finding, reply } = await acknowledges(endpoint)
  yield finding
  if (wasAccepted(reply)) for (const check of checks) yield* check(endpoint, reply)
  else {
    const reason = 'they need an endpoint that accepts a genuine delivery'
    yield { check: 'the other checks', verdict: 'skipped', reason }
  }
}
