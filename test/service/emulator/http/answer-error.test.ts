import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { expect, test, vi } from 'vitest'
import { WebhookError } from '../../../../src/errors.ts'
import { answerError } from '../../../../src/service/emulator/http/answer-error.ts'

async function answerTo(error: Error) {
  const app = new Hono().onError(answerError).get('/', () => {
    throw error
  })
  const response = await app.request('/')
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: await response.json(),
  }
}

test.each<[Error, number, string, string | null]>([
  [new HTTPException(418, { message: 'why' }), 418, 'fail', null],
  [new WebhookError('invalid_option', 'why'), 400, 'fail', null],
  [new WebhookError('overloaded', 'why'), 503, 'error', '1'],
  [new WebhookError('closing', 'why'), 503, 'error', '1'],
  [new WebhookError('timeout', 'why'), 504, 'error', null],
])('%s is answered with %d and its message', async (error, status, word, retryAfter) => {
  expect(await answerTo(error)).toEqual({ status, retryAfter, body: { status: word, message: 'why' } })
})

test('a bug in the emulator is answered 500, and its details go to the console only', async () => {
  const console = vi.spyOn(globalThis.console, 'error').mockImplementation(() => {})
  const fault = new TypeError('undefined is not a secret')
  expect(await answerTo(fault)).toEqual({
    status: 500,
    retryAfter: null,
    body: { status: 'error', message: 'internal error in the emulator: see its console' },
  })
  expect(console).toHaveBeenCalledExactlyOnceWith(fault)
  console.mockRestore()
})
