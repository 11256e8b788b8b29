import type { NewOperation } from '../../inbox/reading.ts'
import type { PageState } from '../page/page-state.ts'

/**
 * Logs what an operator did. It is a warning, since the default logger writes no lower level: a record that has to be
 * switched on is missing when someone asks who discarded an event.
 */
export const record = ({ subject: { logger }, user }: PageState, details: object, message: string): void =>
  logger.warn({ user, ...details }, message)

/** Stores what an operator did. If that fails, the log still has it. */
export async function store({ subject, user: by }: PageState, operation: NewOperation): Promise<void> {
  try {
    await subject.operations.add({ by, ...operation })
  } catch (err) {
    subject.logger.error({ err, ...operation, keys: undefined }, 'what an operator did could not be stored')
  }
}

/** The reason that an operator gave, if any. */
export const reasonIn = (form: URLSearchParams): string | undefined =>
  form.get('reason')?.trim().slice(0, longestReason) || undefined

const longestReason = 500
