// What the published contract suites drive an inbox with.
export { type Call, type Calls, eventOf, openInbox, until } from '../../src/testing/contract/handling.ts'
