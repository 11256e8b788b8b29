import { expect, test } from 'vitest'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { inboxContract } from './suites/inbox.ts'

inboxContract(
  () => ({ inbox: memoryInbox() }),
  { test, expect },
  { reads: true, keepsUnreadable: true, expects: true, strict: true, limits: true, handlesNow: true },
)
