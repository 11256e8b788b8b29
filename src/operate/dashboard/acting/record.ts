import type { NewOperation } from '../../../inbox/reading.ts'
import type { PageState } from '../page/page-state.ts'

/**
 * Logs what an operator did. A warning, because the default logger drops lower levels, and an audit log that must be
 * switched on is missing when somebody asks who discarded an event.
 */
export const record = ({ subject: { logger }, user }: PageState, details: object, message: string): void =>
  logger.warn({ user, ...details }, message)

/** Stores an operation. On failure only the log has it. */
export async function store({ subject, user: by }: PageState, operation: NewOperation): Promise<void> {
  try {
    await subject.operations.add({ by, ...operation })
  } catch (err) {
    subject.logger.error(
      { err, ...operation, keys: undefined },
      'an operation was carried out, but could not be stored',
    )
  }
}

export const reasonIn = (form: URLSearchParams): string | undefined =>
  form.get('reason')?.trim().slice(0, longestReason) || undefined

const longestReason = 500
