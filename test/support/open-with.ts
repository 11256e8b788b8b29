import type { Handle, HandlerName, Inbox, InboxDefinition } from '../../src/inbox/inbox.ts'
import type { Logger } from '../../src/internal/logger.ts'
import { silent } from './silent.ts'

/** One array, since another one would be published as a change. */
const none: readonly HandlerName[] = []

/** For an inbox that only accepts: its events owe no handlers, so that an inbox with any others may end them. */
export const handlesNothing: Handle = () => Promise.reject(new Error('this inbox handles nothing'))

/** Opens an inbox that handles its events with the function. It can parse no unreadable delivery. */
export function openWith(definition: InboxDefinition, handle: Handle, logger: Logger = silent): Inbox {
  const parse = () => {
    throw new Error('this test has no unreadable deliveries')
  }
  return definition.open({ handle, handlersOf: () => [], handlers: () => none, parse, logger, observe() {} })
}
