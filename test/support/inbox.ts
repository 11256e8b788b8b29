// The helpers with which the published contract suites drive an inbox.
export { type Call, type Calls, eventOf, openInbox, until } from '../../src/testing/contract/handling.ts'
