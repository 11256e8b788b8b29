import { describe, expectTypeOf, test } from 'vitest'
import type {
  EncodingFinishedEvent,
  EventOf,
  EventType,
  KnownEvent,
  MediaEvent,
  MediaStatus,
  MediaType,
  PartialFinishedEvent,
  UnknownEvent,
} from '../../src/index.ts'

declare const event: MediaEvent

describe('MediaEvent', () => {
  test('is narrowed by its type, which excludes unknown events', () => {
    if (event.type === 'partial.finished') {
      expectTypeOf(event).toEqualTypeOf<PartialFinishedEvent>()
      expectTypeOf(event.quality).toEqualTypeOf<string | undefined>()
    } else {
      expectTypeOf(event).toEqualTypeOf<Exclude<MediaEvent, PartialFinishedEvent>>()
    }
  })

  test('is an unknown event once every known type is excluded', () => {
    switch (event.type) {
      case 'file.received':
      case 'encoding.started':
      case 'partial.finished':
      case 'encoding.finished':
      case 'encoding.failed':
        expectTypeOf(event).toEqualTypeOf<KnownEvent>()
        break
      default:
        expectTypeOf(event).toEqualTypeOf<UnknownEvent>()
        expectTypeOf(event.type).toExtend<string>()
    }
  })

  test('has no quality before it is narrowed', () => {
    // @ts-expect-error not every event has one
    event.quality
  })

  test('cannot be compared with a type that is misspelt', () => {
    // @ts-expect-error no event has this type
    if (event.type === 'encoding_finished') return
  })

  test('has the fields of every event', () => {
    expectTypeOf(event.key).toBeString()
    expectTypeOf(event.format).toEqualTypeOf<'flat' | 'envelope'>()
    expectTypeOf(event.source).toEqualTypeOf<'delivery' | 'lookup'>()
    expectTypeOf(event.emittedAt).toEqualTypeOf<Date | undefined>()
    expectTypeOf(event.mediaId).toBeString()
    expectTypeOf(event.late).toEqualTypeOf<true | undefined>()
    expectTypeOf(event.qualities).toEqualTypeOf<readonly string[]>()
    expectTypeOf(event.title).toEqualTypeOf<string | undefined>()
    expectTypeOf(event.userId).toEqualTypeOf<string | undefined>()
    expectTypeOf(event.test).toBeBoolean()
    expectTypeOf(event.issues).toEqualTypeOf<readonly string[]>()
    expectTypeOf(event.payload).toEqualTypeOf<Readonly<Record<string, unknown>>>()
  })

  test('cannot be changed', () => {
    // @ts-expect-error an event is shared by its handlers
    event.mediaId = 'other'
    // @ts-expect-error its list is read-only
    event.qualities.push('360p')
    // @ts-expect-error its issues are read-only
    event.issues.push('title')
    // @ts-expect-error its payload is read-only
    event.payload['title'] = 'other'
  })
})

describe('status and media type', () => {
  test('include the words of the service', () => {
    expectTypeOf<'transcoding'>().toExtend<MediaStatus>()
    expectTypeOf<'live-stream'>().toExtend<MediaType>()
  })

  test('take other words', () => {
    const status: MediaStatus = 'paused'
    const mediaType: MediaType = 'hologram' as string
    expectTypeOf(event.status === 'paused').toBeBoolean()
    expectTypeOf(event.mediaType === 'hologram').toBeBoolean()
    expectTypeOf(status).toExtend<string>()
    expectTypeOf(mediaType).toExtend<string>()
  })

  test('take text only', () => {
    // @ts-expect-error a status is text
    const status: MediaStatus = 7
    expectTypeOf(status).not.toBeNumber()
  })
})

describe('EventOf', () => {
  test('is the event of a type', () => {
    expectTypeOf<EventOf<'encoding.finished'>>().toEqualTypeOf<EncodingFinishedEvent>()
    expectTypeOf<EventOf<EventType>>().toEqualTypeOf<KnownEvent>()
    // @ts-expect-error there is no such type
    expectTypeOf<EventOf<'video.deleted'>>().toBeNever()
  })
})
