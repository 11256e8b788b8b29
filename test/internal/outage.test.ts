import { describe, expect, test } from 'vitest'
import { causeText, outage } from '../../src/internal/storage/outage.ts'

const coded = (code: string, message: string, more = {}) => Object.assign(new Error(message), { code, ...more })

describe('the message of an outage', () => {
  test('names the cause and the fix', () => {
    const cause = coded('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:5432')
    expect(outage('Postgres at 127.0.0.1:5432', cause)).toMatchObject({
      code: 'unavailable',
      cause,
      message:
        'Postgres at 127.0.0.1:5432 cannot be used: connect ECONNREFUSED 127.0.0.1:5432 ' +
        '(is the server running, and are the host and the port right?)',
    })
  })

  test('names every address of a host that has several', () => {
    const errors = ['connect ECONNREFUSED ::1:1', 'connect ECONNREFUSED 127.0.0.1:1'].map((text) => new Error(text))
    const cause = Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' })
    expect(causeText(cause)).toMatch(/^connect ECONNREFUSED ::1:1, connect ECONNREFUSED 127\.0\.0\.1:1 \(/)
  })

  test('says that there was no answer if nothing else is known', () => {
    for (const cause of [undefined, null, new Error(''), {}, 'down'])
      expect(outage('Redis', cause).message).toBe('Redis gave no answer')
  })

  test('quotes no values of a statement, and no arguments of a command', () => {
    const invalid = coded('22P02', 'invalid input syntax for type json: "secret"', { severity: 'ERROR' })
    expect(causeText(invalid)).toBe('error 22P02')
    const unknown = new Error("ERR unknown command 'EVAL_RO', with args beginning with: 'secret' ")
    expect(causeText(unknown)).toBe("ERR unknown command 'EVAL_RO'")
  })
})
