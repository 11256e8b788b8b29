import { describe, expect, test } from 'vitest'
import { WebhookError } from '../../../src/errors.ts'
import { classifyFailure, isUndone } from '../../../src/inbox/postgres/storage-failure.ts'

/** An error as the driver makes it of an answer of Postgres. */
const answered = (code: string) => Object.assign(new Error('answered'), { code, severity: 'ERROR' })

/** An error of Node: its code may look like one of Postgres. */
const broken = (code: string) => Object.assign(new Error('broken'), { code })

describe('a failed step', () => {
  test.each([
    ['a broken connection', broken('ECONNRESET'), 'transient'],
    ['a connection that Postgres has closed', broken('EPIPE'), 'transient'],
    ['a firewall that forbids the connection', broken('EPERM'), 'transient'],
    ['a conflict', answered('40001'), 'transient'],
    ['a full disk', answered('53100'), 'transient'],
    ['a statement that takes too long', answered('57014'), 'timeout'],
    ['no answer in time', new Error('Query read timeout'), 'timeout'],
    ['a missing table', answered('42P01'), undefined],
    ['lost tables', new WebhookError('unavailable', 'no', { cause: answered('42P01') }), undefined],
    ['an outage', new WebhookError('unavailable', 'no', { cause: answered('42501') }), 'transient'],
    ['a lost lease', new WebhookError('lease_lost', 'lost'), undefined],
  ])('%s: %#', (_, error, failure) => {
    expect(classifyFailure(error)).toBe(failure)
  })

  test.each([
    ['an answer of Postgres', answered('42P01'), true],
    ['a refused connection', broken('ECONNREFUSED'), true],
    ['a connection that broke while it was sent', broken('EPIPE'), false],
    ['a server that stops', answered('57P01'), false],
  ])('has changed nothing after %s: %#', (_, error, isKnown) => {
    expect(isUndone(error)).toBe(isKnown)
  })
})
