import { describe, expectTypeOf, test } from 'vitest'
import type {
  EncodingFailedEvent,
  EncodingFinishedEvent,
  EventOf,
  FileReceivedEvent,
  HandlerContext,
  KnownEvent,
  MediaEvent,
  PartialFinishedEvent,
  Receiver,
} from '../../src/index.ts'

declare const receiver: Receiver

describe('on', () => {
  test('infers the event and the context', () => {
    receiver.on('encoding.finished', (event, context) => {
      expectTypeOf(event).toEqualTypeOf<EncodingFinishedEvent>()
      expectTypeOf(event.type).toEqualTypeOf<'encoding.finished'>()
      expectTypeOf(context).toEqualTypeOf<HandlerContext>()
    })
  })

  test('gives partial.finished its quality, and no other', () => {
    receiver.on('partial.finished', (event) => {
      expectTypeOf(event).toEqualTypeOf<PartialFinishedEvent>()
      expectTypeOf(event.quality).toEqualTypeOf<string | undefined>()
    })
    receiver.on('encoding.finished', (event) => {
      // @ts-expect-error only partial.finished has a quality
      event.quality
    })
  })

  test('infers the union of a list of types', () => {
    receiver.on(['encoding.finished', 'partial.finished'], (event) => {
      expectTypeOf(event).toEqualTypeOf<EncodingFinishedEvent | PartialFinishedEvent>()
      if (event.type === 'partial.finished') expectTypeOf(event.quality).toEqualTypeOf<string | undefined>()
    })
    const types = ['file.received', 'encoding.failed'] as const
    receiver.on(types, (event) => {
      expectTypeOf(event).toEqualTypeOf<FileReceivedEvent | EncodingFailedEvent>()
    })
  })

  test('takes handlers of more events, asynchronous ones and ones that look at nothing', () => {
    receiver.on('encoding.finished', (_: MediaEvent) => {})
    receiver.on('encoding.finished', (_: KnownEvent) => {})
    receiver.on('encoding.finished', (_: { mediaId: string }) => {})
    receiver.on('encoding.finished', async () => {})
    receiver.on('encoding.finished', () => 7)
    receiver.on('encoding.finished', () => {}, { name: 'publish' })
  })

  test('is chained', () => {
    expectTypeOf(
      receiver
        .on('encoding.finished', () => {})
        .onAny(() => {})
        .onError(() => {}),
    ).toEqualTypeOf<Receiver>()
  })

  test('does not compile with an unknown type', () => {
    // @ts-expect-error underscored names are those of the subscription flags
    receiver.on('encoding_finished', () => {})
    // @ts-expect-error unknown types reach onAny
    receiver.on('video.deleted', () => {})
    // @ts-expect-error one of the list is unknown
    receiver.on(['encoding.finished', 'video.deleted'], () => {})
    // @ts-expect-error a type is required
    receiver.on(() => {})
    // @ts-expect-error any text may be unknown
    receiver.on('encoding.finished' as string, () => {})
  })

  test('does not compile with a wrong handler', () => {
    // @ts-expect-error a handler is required
    receiver.on('encoding.finished')
    // @ts-expect-error a handler is a function
    receiver.on('encoding.finished', 'publish')
    // @ts-expect-error it is the handler of another event
    receiver.on('encoding.finished', (_: PartialFinishedEvent) => {})
    // @ts-expect-error it handles one event of the list only
    receiver.on(['encoding.finished', 'partial.finished'], (_: PartialFinishedEvent) => {})
    // @ts-expect-error there is nothing after the context
    receiver.on('encoding.finished', (_event, _context, _more) => {})
    // @ts-expect-error a name is text
    receiver.on('encoding.finished', () => {}, { name: 7 })
    // @ts-expect-error there is no such option
    receiver.on('encoding.finished', () => {}, { retries: 7 })
  })
})

describe('onAny', () => {
  test('is given every event', () => {
    receiver.onAny((event, context) => {
      expectTypeOf(event).toEqualTypeOf<MediaEvent>()
      expectTypeOf(context).toEqualTypeOf<HandlerContext>()
    })
  })

  test('does not compile with the handler of one event', () => {
    // @ts-expect-error other events come too
    receiver.onAny((_: EncodingFinishedEvent) => {})
  })
})

describe('off', () => {
  test('takes what on took', () => {
    const handler = (_: EventOf<'encoding.finished'>) => {}
    receiver.off('encoding.finished', handler).off(['encoding.finished'], handler).off(handler)
    // @ts-expect-error there is no such type
    receiver.off('video.deleted', handler)
    // @ts-expect-error a type alone says too little
    receiver.off('encoding.finished')
  })
})

describe('onError', () => {
  test('is told what failed', () => {
    receiver.onError((error, { event, handler, attempt, willRetry }) => {
      expectTypeOf(error).toBeUnknown()
      expectTypeOf(event).toEqualTypeOf<MediaEvent>()
      expectTypeOf(handler).toBeString()
      expectTypeOf(attempt).toBeNumber()
      expectTypeOf(willRetry).toBeBoolean()
    })
  })
})
