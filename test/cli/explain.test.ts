import { expect, test } from 'vitest'
import { explained } from '../../src/cli/commands/inbox/explain.ts'
import type { InboxTarget } from '../../src/cli/commands/inbox/target.ts'
import { WebhookError } from '../../src/errors.ts'
import { redacted } from '../../src/service/client/api-error.ts'

test.each([
  ['s3cr?t+x', 'getaddrinfo ENOTFOUND s3cr', 'getaddrinfo ENOTFOUND …'],
  ['a.*(b]c', 'a.*(b]c is wrong, or a.*(b', '… is wrong, or …'],
  ['p$&w', 'no p$&w', 'no …'],
])('no part of the password %s is in an error', (password, message, shown) => {
  const error = new WebhookError('unavailable', 'no answer', { cause: new Error(message) })
  const target = { kind: 'postgres', address: `postgres://app:${password}@db/app` } as InboxTarget
  expect((explained(error, target) as Error).message).toBe(`postgres://…@db/app: no answer: ${shown}`)
})

test('a secret that begins with another one is replaced as a whole', () => {
  expect(redacted('the key abcdef', ['abc', 'abcdef'])).toBe('the key [secret]')
})
