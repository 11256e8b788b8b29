import { describe, expect, test } from 'vitest'
import { checkPlatform, type Platform } from '../../../adapters/shared/platform.ts'
import type { InboxDefinition } from '../../../src/index.ts'

type Definition = Pick<InboxDefinition, 'name' | 'storage' | 'localKeys'>

const memory = { name: 'memoryInbox', storage: 'memory', localKeys: true } as const
const shared = { name: 'memoryInbox', storage: 'memory' } as const
const file = { name: 'sqliteInbox', storage: 'file' } as const
const database = { name: 'postgresInbox', storage: 'database' } as const
const queue = { name: 'queueInbox', storage: 'handed-over' } as const
const localQueue = { ...queue, localKeys: true } as const

/** Checks a setup, and returns the error or the warning. */
function check(
  platform: Platform,
  inbox: Definition,
  ack: 'accepted' | 'handled' = 'accepted',
  options?: { waitUntil: boolean },
): string | undefined {
  let said: string | undefined
  const warn = (details: object, message: string) => {
    expect(details).toEqual({ platform, inbox: inbox.name, ack })
    said = `warning: ${message}`
  }
  const logger = { debug() {}, info() {}, warn, error() {} }
  try {
    checkPlatform('handler', platform, { setup: { inbox, ack, logger } }, options)
  } catch (error) {
    expect(error).toMatchObject({ name: 'WebhookError', code: 'invalid_option' })
    said = `error: ${(error as Error).message}`
  }
  return said
}

describe('on AWS Lambda', () => {
  test.each([memory, shared])('a memory inbox that acknowledges first is an error', (inbox) => {
    expect(check('AWS Lambda', inbox)).toBe(
      'error: handler: AWS Lambda stops a sandbox after its answer, and memoryInbox loses events it has acknowledged: ' +
        'use queueInbox with SQS',
    )
  })

  test.each(['accepted', 'handled'] as const)('an inbox in a file is an error, acknowledged when %s', (ack) => {
    expect(check('AWS Lambda', file, ack)).toBe(
      'error: handler: AWS Lambda deletes the files of its sandboxes, and with them sqliteInbox: use queueInbox with SQS',
    )
  })

  test('a memory inbox that handles first is a warning of doubles and of lost failures', () => {
    expect(check('AWS Lambda', memory, 'handled')).toBe(
      'warning: handler: two sandboxes can handle the same event, since memoryInbox remembers keys in one of them; ' +
        'some senders never repeat an event whose handler failed: use queueInbox with SQS',
    )
    expect(check('AWS Lambda', shared, 'handled')).toBe(
      'warning: handler: some senders never repeat an event whose handler failed: use queueInbox with SQS',
    )
  })

  test('an inbox in a database is a warning that somebody has to run the handlers', () => {
    expect(check('AWS Lambda', database)).toBe(
      'warning: handler: the handlers of postgresInbox run only while a sandbox does: also run a process that stays ' +
        'alive, or use queueInbox with SQS',
    )
  })

  test('a queue whose keys are known to one process only is a warning', () => {
    expect(check('AWS Lambda', localQueue)).toBe(
      'warning: handler: two sandboxes can handle the same event, since queueInbox remembers keys in one of them: ' +
        'give it a store that they share',
    )
  })
})

describe.each([
  ['Cloudflare Workers', 'use durableObjectInbox, or queueInbox with Cloudflare Queues'],
  ['Vercel', 'use queueInbox with a queue such as QStash'],
] as const)('on %s', (platform, fix) => {
  test('a memory inbox that acknowledges first is a warning, as long as the platform waits for handlers', () => {
    const warning = check(platform, memory)
    expect(warning).toMatch(/^warning: .* before memoryInbox has handled its events/)
    expect(warning).toMatch(new RegExp(`: ${fix}$`))
    expect(check(platform, memory, 'accepted', { waitUntil: false })).toMatch(/^error: .* loses events/)
  })

  test('an inbox in a file is an error', () => {
    expect(check(platform, file)).toMatch(/^error: .* deletes the files/)
  })
})

test.each(['AWS Lambda', 'Cloudflare Workers', 'Vercel'] as const)(
  'A queue with a shared store fits %s',
  (platform) => {
    expect(check(platform, queue)).toBe(undefined)
    expect(check(platform, { name: 'theirInbox' })).toBe(undefined)
  },
)
