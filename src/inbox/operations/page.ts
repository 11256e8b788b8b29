import { checkOptions, wholeNumber } from '../../internal/check-options.ts'
import { maxWaitMs } from '../../internal/timers.ts'

interface PageOptions {
  readonly limit?: number
  readonly offset?: number
}

const count = wholeNumber(maxWaitMs, 0)

/** @throws WebhookError `invalid_option` */
export function checkPage(options: PageOptions = {}): Required<PageOptions> {
  checkOptions('deadLetters.list', options, { limit: count, offset: count })
  const { limit = 100, offset = 0 } = options
  return { limit, offset }
}

/** @throws WebhookError `invalid_option` */
export function checkLimit(owner: string, limit = 100): number {
  checkOptions(owner, { limit }, { limit: count })
  return limit
}
