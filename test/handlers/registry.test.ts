import { describe, expect, test } from 'vitest'
import { mediaService } from '../../src/events/media-service/sender.ts'
import { HandlerRegistry } from '../../src/handlers/registry.ts'
import { untyped } from '../support/untyped.ts'

const invalid = (message: RegExp) =>
  expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(message) })

const namesFor = (registry: HandlerRegistry, type: string) => registry.handlersFor(type).map(({ name }) => name)

function publish() {}
function archive() {}

describe('the handler registry', () => {
  test('keeps handlers in the order in which they were registered', () => {
    const registry = new HandlerRegistry(mediaService, { 'encoding.finished': publish })
    registry.add(undefined, archive)
    registry.add(['encoding.finished', 'encoding.failed'], () => {}, { name: 'count' })
    expect(namesFor(registry, 'encoding.finished')).toEqual(['publish', 'archive', 'count'])
    expect(namesFor(registry, 'encoding.failed')).toEqual(['archive', 'count'])
    expect(namesFor(registry, 'file.received')).toEqual(['archive'])
  })

  test('gives events of unknown types to the handlers of every type', () => {
    const registry = new HandlerRegistry(mediaService, { 'encoding.finished': publish })
    expect(registry.handles('video.deleted')).toBe(false)
    registry.add(undefined, archive)
    expect(namesFor(registry, 'video.deleted')).toEqual(['archive'])
  })

  test('remembers the handlers of known types only, since a sender can make up any number of others', () => {
    const registry = new HandlerRegistry(mediaService)
    registry.add(undefined, archive)
    expect(registry.handlersFor('encoding.finished')).toBe(registry.handlersFor('encoding.finished'))
    expect(registry.handlersFor('made up')).not.toBe(registry.handlersFor('made up'))
  })

  test('gives a test delivery only to the handlers that ask for it', () => {
    const registry = new HandlerRegistry(mediaService, { 'encoding.finished': publish })
    registry.add(['encoding.finished'], archive, { tests: false })
    expect(registry.handles('encoding.finished', true)).toBe(false)
    registry.add(undefined, () => {}, { name: 'any', tests: true })
    registry.add(['encoding.finished'], () => {}, { name: 'one', tests: true })
    registry.remove(['encoding.failed'], publish)
    const named = (type: string) => registry.handlersFor(type, true).map(({ name }) => name)
    expect([named('encoding.finished'), named('video.deleted')]).toEqual([['any', 'one'], ['any']])
    expect(namesFor(registry, 'encoding.finished')).toEqual(['publish', 'archive', 'any', 'one'])
  })

  test.each(['__proto__', 'constructor', 'toString', ''])('has no handler for the type %j', (type) => {
    expect(new HandlerRegistry(mediaService, { 'encoding.finished': publish }).handles(type)).toBe(false)
  })

  test('names a handler after its function, or the types it is for, and numbers those that share a name', () => {
    const registry = new HandlerRegistry(mediaService, { 'encoding.finished': (event: never) => event })
    registry.add(undefined, publish)
    registry.add(undefined, publish)
    registry.add(undefined, publish)
    registry.add(undefined, () => {})
    registry.add(undefined, () => {})
    registry.add(['encoding.finished', 'encoding.failed'], () => {})
    expect(namesFor(registry, 'encoding.finished')).toEqual([
      'encoding.finished',
      'publish',
      'publish-2',
      'publish-3',
      'onAny',
      'onAny-2',
      'encoding.finished,encoding.failed',
    ])
  })

  test('never gives two handlers one name', () => {
    const registry = new HandlerRegistry(mediaService)
    registry.add(undefined, archive, { name: 'publish-2' })
    registry.add(undefined, publish)
    registry.add(undefined, publish)
    expect(namesFor(registry, 'x')).toEqual(['publish-2', 'publish', 'publish-3'])
    expect(() => registry.add(undefined, () => {}, { name: 'publish' })).toThrow(invalid(/publish is already/))
  })

  test('throws for an invalid handler or type', () => {
    const registry = new HandlerRegistry(mediaService)
    expect(() => registry.add(undefined, untyped('publish'))).toThrow(invalid(/the handler must be a function/))
    expect(() => registry.add([untyped('encoding_finished')], publish)).toThrow(invalid(/encoding_finished/))
    expect(() => registry.add([], publish)).toThrow(invalid(/at least one/))
    expect(() => registry.addErrorHandler(untyped(undefined))).toThrow(invalid(/onError/))
    expect(() => new HandlerRegistry(mediaService, untyped({ typo: publish }))).toThrow(invalid(/typo/))
  })

  test('removes a handler from one of its types and keeps it for the others', () => {
    const registry = new HandlerRegistry(mediaService)
    registry.add(['encoding.finished', 'encoding.failed'], publish)
    registry.remove(['encoding.failed'], publish)
    expect(namesFor(registry, 'encoding.finished')).toEqual(['publish'])
    expect(registry.handles('encoding.failed')).toBe(false)
    registry.remove(['encoding.finished'], publish)
    expect(registry.handles('encoding.finished')).toBe(false)
  })

  test('frees the name of a handler that is removed from its last type', () => {
    const registry = new HandlerRegistry(mediaService)
    registry.add(['encoding.finished'], publish, { name: 'publish' })
    registry.remove(['encoding.finished'], publish)
    registry.add(['encoding.failed'], archive, { name: 'publish' })
    expect(namesFor(registry, 'encoding.failed')).toEqual(['publish'])
  })

  test('leaves out a type whose handler is undefined', () => {
    const registry = new HandlerRegistry(mediaService, { 'encoding.failed': undefined, 'encoding.finished': publish })
    expect(registry.handles('encoding.failed')).toBe(false)
    expect(registry.handles('encoding.finished')).toBe(true)
  })

  test('removes a handler from every type', () => {
    const registry = new HandlerRegistry(mediaService, { 'encoding.finished': publish })
    registry.add(undefined, publish)
    registry.add(undefined, archive)
    registry.remove(undefined, publish)
    expect(namesFor(registry, 'encoding.finished')).toEqual(['archive'])
  })

  test('does not remove a single type from a handler of every type', () => {
    const registry = new HandlerRegistry(mediaService)
    registry.add(undefined, publish)
    registry.remove(['encoding.finished'], publish)
    expect(namesFor(registry, 'encoding.finished')).toEqual(['publish'])
  })

  test('ignores the removal of a handler that is not registered', () => {
    const registry = new HandlerRegistry(mediaService, { 'encoding.finished': publish })
    registry.remove(undefined, archive)
    registry.remove(['encoding.finished'], archive)
    expect(namesFor(registry, 'encoding.finished')).toEqual(['publish'])
  })

  test('does not change the handlers of an event that is being handled', () => {
    const registry = new HandlerRegistry(mediaService, { 'encoding.finished': publish })
    const handlers = registry.handlersFor('encoding.finished')
    registry.add(undefined, archive)
    registry.remove(undefined, publish)
    expect(handlers.map(({ name }) => name)).toEqual(['publish'])
  })
})
