import { expect, test } from 'vitest'
import { memoryInbox } from '../../src/inbox/memory.ts'
import { inboxContract } from '../../src/testing/contract/inbox.ts'

inboxContract(
  () => ({ inbox: memoryInbox() }),
  { test, expect },
  { reads: true, expects: true, strict: true, limits: true, handlesNow: true },
)
