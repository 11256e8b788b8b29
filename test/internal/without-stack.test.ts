import { expect, test } from 'vitest'
import { withoutStack } from '../../src/internal/without-stack.ts'

test('an error that is made without a stack has its message, and the next one has its stack again', () => {
  const { stackTraceLimit } = Error
  expect(withoutStack(() => new Error('forged')).stack).toBe('Error: forged')
  expect(Error.stackTraceLimit).toBe(stackTraceLimit)
  expect(new Error('other').stack).toContain('without-stack.test.ts')
})

test('the limit of stacks stays as it was if the error cannot be made', () => {
  const { stackTraceLimit } = Error
  const make = () => {
    throw new RangeError('no')
  }
  expect(() => withoutStack(make)).toThrow('no')
  expect(Error.stackTraceLimit).toBe(stackTraceLimit)
})

test('an error is made if the limit of stacks cannot be changed', () => {
  const descriptor = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit') as PropertyDescriptor
  Object.defineProperty(Error, 'stackTraceLimit', { ...descriptor, writable: false })
  try {
    expect(withoutStack(() => new Error('forged')).message).toBe('forged')
  } finally {
    Object.defineProperty(Error, 'stackTraceLimit', descriptor)
  }
})
