import type { Handle, InboxHost } from '../src/inbox/inbox.ts'

/** Makes the host of an inbox that is opened without a receiver. */
export const hostOf = (handle: Handle): InboxHost => ({
  handle,
  handlersOf: () => [],
  parse: () => Promise.reject(new Error('the benchmark has no unreadable deliveries')),
  logger: console,
  observe() {},
})
