import { expect, test } from 'vitest'
import { loopedInbox } from '../inbox/queue/looped-inbox.ts'
import { inboxContract } from './suites/inbox.ts'

inboxContract(loopedInbox, { test, expect }, { ordered: false, keepsEvents: false })
