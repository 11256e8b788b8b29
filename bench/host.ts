import type { Handle, HandlerName, InboxHost } from '../src/inbox/inbox.ts'
import { consoleLogger } from '../src/internal/logger.ts'

/** One array, since another one would be published as a change. */
const none: readonly HandlerName[] = []

/** Makes the host of an inbox that is opened without a receiver. */
export const hostOf = (handle: Handle): InboxHost => ({
  handle,
  handlersOf: () => [],
  handlers: () => none,
  parse: () => Promise.reject(new Error('the benchmark has no unreadable deliveries')),
  logger: consoleLogger,
  observe() {},
})
