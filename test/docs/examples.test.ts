import { describe, expect, test } from 'vitest'
import * as mediaWebhooks from '../../src/index.ts'
import { storeContract } from '../../src/testing/index.ts'
import { inboxContract } from '../contract/suites/inbox.ts'
import { exportsOf } from './written-out.ts'

const modules = { 'media-webhooks': mediaWebhooks }

describe('the inbox that the guide shows', () => {
  const { mapInbox } = exportsOf('contributing', 'map-inbox', modules) as {
    mapInbox: () => mediaWebhooks.InboxDefinition
  }
  inboxContract(() => ({ inbox: mapInbox() }), { test, expect }, { ordered: false })
})

describe('the store that the guide shows', () => {
  const { mapStore } = exportsOf('contributing', 'map-store', modules) as {
    mapStore: (now: () => number) => mediaWebhooks.IdempotencyStore
  }
  storeContract(
    () => {
      let time = 0
      const advance = (ms: number) => {
        time += ms
      }
      return { store: mapStore(() => time), advance }
    },
    { test, expect },
    { connection: false },
  )
})
