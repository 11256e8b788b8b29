import type { PageState } from '../page/page-state.ts'

/**
 * Logs what an operator did. It is a warning, since the default logger writes no lower level: a record that has to be
 * switched on is missing when someone asks who discarded an event.
 */
export const record = ({ subject: { logger }, user }: PageState, details: object, message: string): void =>
  logger.warn({ user, ...details }, message)
