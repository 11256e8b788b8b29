import { expect, test } from 'vitest'
import { inboxContract } from '../../src/testing/contract/inbox.ts'
import { loopedInbox } from '../inbox/queue/looped-inbox.ts'

inboxContract(loopedInbox, { test, expect }, { ordered: false, keepsEvents: false })
