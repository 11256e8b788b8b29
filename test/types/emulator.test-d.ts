import { describe, expectTypeOf, test } from 'vitest'
import {
  type Answer,
  type Behaviour,
  type Credentials,
  createEmulator,
  type DeliveryFailure,
  type DeliveryRecord,
  type Emulator,
  type EmulatorOptions,
  type Fault,
  type Media,
  type MediaInput,
  type Profile,
  type Sending,
  type SendingState,
  type SentRequest,
  type SigningOptions,
  type TimelineEntry,
} from '../../src/service/emulator/index.ts'

declare const emulator: Emulator

describe('createEmulator', () => {
  test('needs no options', () => {
    expectTypeOf(createEmulator).parameter(0).toEqualTypeOf<EmulatorOptions | undefined>()
    expectTypeOf(createEmulator()).toEqualTypeOf<Promise<Emulator>>()
  })

  test('takes one of the two profiles', () => {
    createEmulator({ port: 4010, profile: 'observed', timeScale: 0.01, clock: () => 0n })
    expectTypeOf<Profile>().toEqualTypeOf<'documented' | 'observed'>()
    // @ts-expect-error no such profile
    createEmulator({ profile: 'fast' })
    // @ts-expect-error a clock returns nanoseconds, as a bigint
    createEmulator({ clock: () => 0 })
    // @ts-expect-error it listens on 127.0.0.1 only
    createEmulator({ host: '0.0.0.0' })
  })
})

describe('an emulator', () => {
  test('has what a client needs', () => {
    expectTypeOf(emulator.url).toBeString()
    expectTypeOf(emulator.credentials).toEqualTypeOf<Credentials>()
    expectTypeOf(emulator).toExtend<AsyncDisposable>()
  })

  test('takes the parts of a media item', () => {
    expectTypeOf(emulator.addMedia).parameter(0).toEqualTypeOf<MediaInput | undefined>()
    expectTypeOf(emulator.addMedia()).toEqualTypeOf<Media>()
    expectTypeOf(emulator.addMedia().timeline).items.toEqualTypeOf<TimelineEntry>()
    // @ts-expect-error qualities are a list
    emulator.addMedia({ qualities: '360p' })
  })

  test('takes a behaviour', () => {
    expectTypeOf(emulator.behave).parameters.toEqualTypeOf<[string, Behaviour]>()
    expectTypeOf<Behaviour['fault']>().toEqualTypeOf<Fault | undefined>()
    expectTypeOf<Behaviour['sign']>().toEqualTypeOf<SigningOptions | undefined>()
    emulator.behave('id', { sign: { scheme: 'url-token', secret: 'a' }, fault: 'drop', format: 'envelope' })
    // @ts-expect-error no such fault
    emulator.behave('id', { fault: 'explode' })
    // @ts-expect-error an HMAC is sent in a header
    emulator.behave('id', { sign: { scheme: 'hmac-signature', secret: 'a' } })
  })

  test('lists what it sent', () => {
    expectTypeOf(emulator.sendings()).items.toEqualTypeOf<Sending>()
    expectTypeOf(emulator.repeat('id')).toEqualTypeOf<Sending>()
    expectTypeOf<Sending['state']>().toEqualTypeOf<SendingState>()
    expectTypeOf<Sending['deliveries']>().items.toEqualTypeOf<DeliveryRecord>()
    expectTypeOf<DeliveryRecord['request']>().toEqualTypeOf<SentRequest>()
    expectTypeOf<DeliveryRecord['answer']>().toEqualTypeOf<Answer | undefined>()
    expectTypeOf<DeliveryRecord['failure']>().toEqualTypeOf<DeliveryFailure | undefined>()
    expectTypeOf(emulator.onDelivery).parameter(0).toEqualTypeOf<(delivery: DeliveryRecord, sending: Sending) => void>()
    expectTypeOf(emulator.onDelivery(() => {})).toEqualTypeOf<() => void>()
    expectTypeOf(emulator.settled({ timeoutMs: 5 })).toEqualTypeOf<Promise<void>>()
  })
})
