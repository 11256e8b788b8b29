import { expect, test, vi } from 'vitest'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { defineInbox } from '../../src/index.ts'
import { untyped } from '../support/untyped.ts'

test.each([undefined, null, 'text', {}, { name: 'mapInbox' }])(
  'defineInbox throws invalid_option for %j, which is not a definition',
  (definition) => {
    expect(() => defineInbox(untyped(definition))).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: 'defineInbox: pass { name, open }' }),
    )
  },
)

test.each([
  [sqliteInbox, 'sqliteInbox: pass either path or database'],
  [postgresInbox, 'postgresInbox: give either a pool or a connection'],
  [bullmqInbox, 'bullmqInbox: connection must be'],
] as [() => unknown, string][])('without options, %o says which one it needs', (inbox, message) => {
  expect(() => inbox()).toThrow(
    expect.objectContaining({ code: 'invalid_option', message: expect.stringContaining(message) }),
  )
})

test('a definition whose inbox could not be opened can be opened again, and then no more', () => {
  const inbox = untyped({})
  const open = vi.fn(() => inbox)
  open.mockImplementationOnce(() => {
    throw new Error('not yet')
  })
  const definition = defineInbox({ name: 'ownInbox', open })
  const host = untyped({})
  expect(() => definition.open(host)).toThrow('not yet')
  expect(definition.open(host)).toBe(inbox)
  expect(() => definition.open(host)).toThrow('ownInbox: an inbox serves one receiver')
})
