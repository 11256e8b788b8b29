import { WebhookError } from '../../errors.ts'
import type { Attempt } from '../inbox.ts'

/**
 * Stops the handler that runs for an event, at an operator's request. Its run fails, as if its time was up. Returns `false`
 * if no handler runs.
 */
export function stopRun(job: { readonly attempt: Attempt | undefined } | undefined): boolean {
  const run = job?.attempt?.run
  run?.expire(new WebhookError('stopped', 'stopped by an operator'))
  return run !== undefined
}
