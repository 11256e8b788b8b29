import { expect, test } from 'vitest'
import { revokedProxy } from '../../support/untyped.ts'
import { deliverInServer } from './deliver-in-server.ts'
import { startTracing, tracedReceiver } from './tracing.ts'

const { exported } = await startTracing()

/** Returns the span of a handler that throws a value. */
async function runThatThrows(thrown: unknown) {
  const receiver = tracedReceiver({ retry: { attempts: 1 } }).on('encoding.finished', () => {
    throw thrown
  })
  await deliverInServer(receiver)
  const [run] = await exported('process')
  if (run === undefined) throw new Error('there is no span of the run')
  return run
}

test.each([
  ['text', 'text', '_OTHER', 'text'],
  ['undefined', undefined, '_OTHER', 'undefined'],
  ['an error whose name is not a word', Object.assign(new Error('odd'), { name: 'film 4711' }), '_OTHER', 'odd'],
  [
    'an object that cannot be read',
    new Proxy(new Error('never'), {
      get() {
        throw new Error('unreadable')
      },
    }),
    '_OTHER',
    'an unprintable error',
  ],
  ['a revoked proxy', revokedProxy(), '_OTHER', 'an unprintable error'],
])('a handler that throws %s has a span that tells it', async (_, thrown, type, message) => {
  const run = await runThatThrows(thrown)
  expect(run).toMatchObject({ attributes: { 'error.type': type }, error: message })
  expect(run.exceptions).toHaveLength(1)
})

test.each([
  ['of 2,000 characters is recorded as it is', 'm'.repeat(2_000), 'm'.repeat(2_000)],
  ['that is longer is cut off', 'm'.repeat(2_001), `${'m'.repeat(2_000)}…`],
])('the message of an error %s', async (_, message, recorded) => {
  const run = await runThatThrows(new Error(message))
  expect(run.error).toBe(recorded)
  expect(run.exceptions).toMatchObject([{ 'exception.message': recorded }])
})

test.each([
  ['of 8,000 characters is recorded as it is', 's'.repeat(8_000), 's'.repeat(8_000)],
  ['that is longer is cut off', 's'.repeat(8_001), `${'s'.repeat(8_000)}…`],
  ['that is missing is left out', undefined, undefined],
])('the stack of an error %s', async (_, stack, recorded) => {
  const run = await runThatThrows(Object.assign(new Error('broken'), { stack }))
  expect(run.exceptions).toHaveLength(1)
  expect(run.exceptions[0]?.['exception.stacktrace']).toBe(recorded)
})
