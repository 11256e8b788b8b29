import { WebhookError } from '../../errors.ts'
import type { Attempt } from '../inbox.ts'

/** Stops an event's running handler for an operator: the run fails, like a timeout. Returns `false` if none runs. */
export function stopRun(job: { readonly attempt: Attempt | undefined } | undefined): boolean {
  const run = job?.attempt?.run
  run?.expire(new WebhookError('stopped', 'stopped by an operator'))
  return run !== undefined
}
