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
  Rate,
  Receiver,
} from '../../src/index.ts'
import { PermanentFailure, RetryAfter } from '../../src/index.ts'

declare const receiver: Receiver

describe('on', () => {
  test('infers the event and the context', () => {
    receiver.on('encoding.finished', (event, context) => {
      expectTypeOf(event).toEqualTypeOf<EncodingFinishedEvent>()
      expectTypeOf(event.type).toEqualTypeOf<'encoding.finished'>()
      expectTypeOf(context).toEqualTypeOf<HandlerContext>()
    })
  })

  test('gives a quality to partial.finished only', () => {
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

  test('takes handlers of more events, asynchronous handlers, and handlers without parameters', () => {
    receiver.on('encoding.finished', (_: MediaEvent) => {})
    receiver.on('encoding.finished', (_: KnownEvent) => {})
    receiver.on('encoding.finished', (_: { mediaId: string }) => {})
    receiver.on('encoding.finished', async () => {})
    receiver.on('encoding.finished', () => 7)
    receiver.on('encoding.finished', () => {}, { name: 'publish' })
    receiver.on('encoding.finished', () => {}, { tests: true }).onAny(() => {}, { tests: true })
    receiver.on('encoding.finished', () => {}, { timeoutMs: 5_000, retry: { attempts: 3, baseMs: 100, maxMs: 1_000 } })
    receiver.onAny(() => {}, { retry: { attempts: 3 } })
    receiver.on('encoding.finished', () => {}, { concurrency: 2, rate: '10/s' }).onAny(() => {}, { rate: '600/min' })
    receiver.onAny(() => {}, { rate: `${10 * 60}/h` as const satisfies Rate })
  })

  test('can be chained', () => {
    expectTypeOf(
      receiver
        .on('encoding.finished', () => {})
        .onAny(() => {})
        .onError(() => {}),
    ).toEqualTypeOf<Receiver>()
  })

  test('does not compile with an unknown type', () => {
    // @ts-expect-error event types have dots, not underscores
    receiver.on('encoding_finished', () => {})
    // @ts-expect-error unknown types go to onAny
    receiver.on('video.deleted', () => {})
    // @ts-expect-error one type of the list is unknown
    receiver.on(['encoding.finished', 'video.deleted'], () => {})
    // @ts-expect-error a type is required
    receiver.on(() => {})
    // @ts-expect-error a string may be an unknown type
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
    // @ts-expect-error the context is the last parameter
    receiver.on('encoding.finished', (_event, _context, _more) => {})
    // @ts-expect-error a name is text
    receiver.on('encoding.finished', () => {}, { name: 7 })
    // @ts-expect-error tests is true or false
    receiver.on('encoding.finished', () => {}, { tests: 'all' })
    // @ts-expect-error a time limit is a number of ms
    receiver.on('encoding.finished', () => {}, { timeoutMs: '5 s' })
    // @ts-expect-error retry has options
    receiver.on('encoding.finished', () => {}, { retry: 3 })
    // @ts-expect-error concurrency is a number
    receiver.on('encoding.finished', () => {}, { concurrency: '2' })
    // @ts-expect-error a rate says in which time
    receiver.on('encoding.finished', () => {}, { rate: 10 })
    // @ts-expect-error a rate says in which time
    receiver.on('encoding.finished', () => {}, { rate: '10' })
    // @ts-expect-error a second, a minute or an hour
    receiver.on('encoding.finished', () => {}, { rate: '10/d' })
    // @ts-expect-error without spaces
    receiver.on('encoding.finished', () => {}, { rate: '10 / s' })
    // @ts-expect-error there is no such option
    receiver.on('encoding.finished', () => {}, { retries: 7 })
  })
})

describe('onAny', () => {
  test('gets every event', () => {
    receiver.onAny((event, context) => {
      expectTypeOf(event).toEqualTypeOf<MediaEvent>()
      expectTypeOf(context).toEqualTypeOf<HandlerContext>()
    })
  })

  test('does not compile with the handler of one event', () => {
    // @ts-expect-error it gets other events too
    receiver.onAny((_: EncodingFinishedEvent) => {})
  })
})

describe('off', () => {
  test('takes the arguments of `on`', () => {
    const handler = (_: EventOf<'encoding.finished'>) => {}
    receiver.off('encoding.finished', handler).off(['encoding.finished'], handler).off(handler)
    // @ts-expect-error there is no such type
    receiver.off('video.deleted', handler)
    // @ts-expect-error the handler is missing
    receiver.off('encoding.finished')
  })
})

describe('onError', () => {
  test('gets what failed', () => {
    receiver.onError((error, { event, handler, attempt, willRetry }) => {
      expectTypeOf(error).toBeUnknown()
      expectTypeOf(event).toEqualTypeOf<MediaEvent>()
      expectTypeOf(handler).toBeString()
      expectTypeOf(attempt).toBeNumber()
      expectTypeOf(willRetry).toBeBoolean()
    })
  })
})

describe('what a handler throws', () => {
  test('has a reason or a pause, and a cause', () => {
    expectTypeOf(PermanentFailure).constructorParameters.toEqualTypeOf<[reason: string, options?: ErrorOptions]>()
    type Delay = number | string | Date
    expectTypeOf(RetryAfter).constructorParameters.toEqualTypeOf<[delay: Delay, options?: ErrorOptions]>()
    expectTypeOf(new RetryAfter('90 s').delayMs).toBeNumber()
    expectTypeOf(new PermanentFailure('no')).toExtend<Error>()
  })

  test('does not compile without it', () => {
    // @ts-expect-error a reason is required
    new PermanentFailure()
    // @ts-expect-error a delay is required
    new RetryAfter()
    // @ts-expect-error a delay is a number, a text or a Date
    new RetryAfter({ seconds: 9 })
  })
})
