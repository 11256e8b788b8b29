import { type Rules, wholeNumber } from '../../internal/check-options.ts'

export interface InboxLimits {
  readonly concurrency: number
  readonly maxWaiting: number
  readonly maxDeadLetters: number
  readonly ttlMs: number
}

export const limitRules: Rules<InboxLimits> = {
  concurrency: wholeNumber(),
  maxWaiting: wholeNumber(),
  maxDeadLetters: wholeNumber(),
  ttlMs: wholeNumber(),
}

export const limitsOf = ({
  concurrency = 16,
  maxWaiting = 10_000,
  maxDeadLetters = 10_000,
  ttlMs = 86_400_000,
}: Partial<InboxLimits>): InboxLimits => ({ concurrency, maxWaiting, maxDeadLetters, ttlMs })
