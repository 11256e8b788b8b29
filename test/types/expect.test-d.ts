import { describe, expectTypeOf, test } from 'vitest'
import { postgresInbox } from '../../src/inbox/postgres.ts'
import {
  createReceiver,
  type EncodingStartedEvent,
  type EventType,
  type FileReceivedEvent,
  type HandlerContext,
  type KnownEvent,
  type OpenExpectation,
  type Overdue,
  type OverdueHandler,
  type Receiver,
  unverified,
} from '../../src/index.ts'

declare const receiver: Receiver
const rule = { then: 'encoding.finished', within: '2 h' } as const

describe('expect', () => {
  test('infers the event that began the expectation, and the context', () => {
    receiver.expect('file.received', rule, (overdue, context) => {
      expectTypeOf(overdue).toEqualTypeOf<Overdue<'file.received'>>()
      expectTypeOf(overdue.event).toEqualTypeOf<FileReceivedEvent>()
      expectTypeOf(overdue.rule).toEqualTypeOf<string>()
      expectTypeOf(overdue.mediaId).toEqualTypeOf<string>()
      expectTypeOf(overdue.dueAt).toEqualTypeOf<Date>()
      expectTypeOf(context).toEqualTypeOf<HandlerContext>()
    })
  })

  test('infers the union of a list of types', () => {
    receiver.expect(['file.received', 'encoding.started'], rule, ({ event }) => {
      expectTypeOf(event).toEqualTypeOf<FileReceivedEvent | EncodingStartedEvent>()
    })
  })

  test('takes one type or several, ms or a text, and a name', () => {
    const types: readonly EventType[] = ['encoding.finished', 'encoding.failed']
    receiver.expect('file.received', { then: types, within: 7_200_000, name: 'encoded' }, async () => {})
    const overdue: OverdueHandler = ({ event }) => void expectTypeOf(event).toEqualTypeOf<KnownEvent>()
    receiver.expect('file.received', rule, overdue)
    expectTypeOf(
      receiver.expect('file.received', rule, () => 7).on('encoding.failed', () => {}),
    ).toEqualTypeOf<Receiver>()
  })

  test('passes the additions of the inbox to the handler', () => {
    const inbox = postgresInbox({ connection: 'postgres://app@db.example/app' })
    createReceiver({ verify: unverified(), inbox }).expect('file.received', rule, async (_, { transaction }) => {
      await transaction((client) => client.query('SELECT 1'))
    })
    receiver.expect('file.received', rule, (_, context) => {
      // @ts-expect-error the memory inbox has no transactions
      context.transaction
    })
  })

  test('lists what is open', async () => {
    expectTypeOf(await receiver.inbox.expected?.(10)).toEqualTypeOf<readonly OpenExpectation[] | undefined>()
    expectTypeOf((await receiver.inbox.stats()).expected).toEqualTypeOf<number | undefined>()
  })

  test('does not compile with a wrong rule', () => {
    // @ts-expect-error then is missing
    receiver.expect('file.received', { within: '2 h' }, () => {})
    // @ts-expect-error within is missing
    receiver.expect('file.received', { then: 'encoding.finished' }, () => {})
    // @ts-expect-error no such type follows
    receiver.expect('file.received', { then: 'encoding.done', within: '2 h' }, () => {})
    // @ts-expect-error no such type begins it
    receiver.expect('file.lost', rule, () => {})
    // @ts-expect-error no such option
    receiver.expect('file.received', { ...rule, withinMs: 1 }, () => {})
    // @ts-expect-error a name is text
    receiver.expect('file.received', { ...rule, name: 7 }, () => {})
  })

  test('does not compile with a wrong handler', () => {
    // @ts-expect-error a handler is required
    receiver.expect('file.received', rule)
    // @ts-expect-error it gets what is overdue, which has the event
    receiver.expect('file.received', rule, ({ type }) => type)
    // @ts-expect-error it is the handler of another event
    receiver.expect('file.received', rule, (_: Overdue<'encoding.started'>) => {})
  })
})
