import { expect, onTestFinished, test, vi } from 'vitest'
import { consoleLogger } from '../../src/internal/logger.ts'
import { userFrames, withoutOwnFrames } from '../../src/internal/stack.ts'

const frame = (place: string) => `    at run (${place}:1:2)`

test('the frames of a failure are those of the user', () => {
  const others = ['node:internal/timers', '/app/node_modules/pg/lib/client.js', 'C:\\app\\node_modules\\pg\\client.js']
  const stack = ['Error: no\n    at home', ...['/app/a.js', ...others, 'file:///app/b.js'].map(frame)].join('\n')
  expect(userFrames({ stack })).toBe('at home\nat run (/app/a.js:1:2)\nat run (file:///app/b.js:1:2)')
})

test('the frames of a failure are few and short, whatever its stack is', () => {
  const many = (length: number) =>
    `Error\n${Array(20)
      .fill(frame(`/app/${'x'.repeat(length)}`))
      .join('\n')}`
  expect(userFrames({ stack: many(1) })?.split('\n')).toHaveLength(10)
  expect(userFrames({ stack: many(400) })).toHaveLength(1_500)
  for (const stack of [undefined, 7, '', 'Error: no']) expect(userFrames({ stack })).toBeUndefined()
})

test('the calls of this package are left out of a stack', () => {
  const own = frame('/app/node_modules/media-webhooks/dist/index.js')
  const stack = ['Error: no', frame('/app/a.js'), own, frame('/app/node_modules/pg/index.js')]
  expect(withoutOwnFrames(stack.join('\n')).split('\n')).toEqual(stack.filter((line) => line !== own))
})

test('the default logger prints an error with its properties, and the user part of its stack', async () => {
  const printed: unknown[] = []
  const error = vi.spyOn(console, 'error').mockImplementation((...line) => void printed.push(...line))
  onTestFinished(() => error.mockRestore())
  class Refused extends Error {
    readonly code = 'E_REFUSED'
  }
  const err = new Refused('no', { cause: 'a cause' })
  err.stack = `${err.stack}\n${frame('/app/node_modules/media-webhooks/dist/index.js')}`
  consoleLogger.error({ err }, 'it failed')
  const [, shown] = printed as [string, Refused]
  expect(shown).toBeInstanceOf(Refused)
  expect(shown).toMatchObject({ message: 'no', code: 'E_REFUSED', cause: 'a cause' })
  expect(shown.stack).toContain('stack.test.ts')
  expect(shown.stack).not.toContain('media-webhooks/dist')
  expect(err.stack).toContain('media-webhooks/dist')
})
