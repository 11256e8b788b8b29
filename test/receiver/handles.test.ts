import { expect, test } from 'vitest'
import { eventTypes } from '../../src/index.ts'
import { receiverWith } from './listening-receiver.ts'

test('a receiver knows for which types handlers are registered', () => {
  const handler = () => {}
  const receiver = receiverWith({ handlers: { 'file.received': handler } })
  const handled = () => eventTypes.filter((type) => receiver.handles(type))
  expect(handled()).toEqual(['file.received'])
  receiver.on(['encoding.finished', 'encoding.failed'], handler)
  expect(handled()).toEqual(['file.received', 'encoding.finished', 'encoding.failed'])
  receiver.off('encoding.failed', handler)
  expect(handled()).toEqual(['file.received', 'encoding.finished'])
})

test('a receiver with onAny handles every type, until that handler is removed', () => {
  const handler = () => {}
  const receiver = receiverWith().onAny(handler)
  expect(eventTypes.filter((type) => receiver.handles(type))).toEqual(eventTypes)
  receiver.off(handler)
  expect(eventTypes.filter((type) => receiver.handles(type))).toEqual([])
})
