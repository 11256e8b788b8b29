import { expect, test } from 'vitest'
import { durableObjectStore } from '../../../src/idempotency/durable-object.ts'
import { durableObjectInbox, type ObjectNamespace } from '../../../src/inbox/durable-object/cloudflare.ts'
import { createReceiver, unverified, WebhookError } from '../../../src/index.ts'
import { shardOf } from '../../../src/internal/storage/durable-objects.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { untyped } from '../../support/untyped.ts'

type Answer = { readonly result?: unknown; readonly error?: { readonly code: string; readonly message: string } }

/** Objects that answer as the test says: with an answer, an error that the stub throws, or never. */
function objects(...answers: (Answer | Error | 'never')[]) {
  const asked: { name: string; step: string; stub: object }[] = []
  const namespace: ObjectNamespace = {
    idFromName: (name) => ({ name }),
    get(id) {
      const stub = {
        async fetch(_url: string, { body }: { body: string }) {
          asked.push({ name: (id as { name: string }).name, step: JSON.parse(body).step, stub })
          const answer = answers.length > 1 ? answers.shift() : answers[0]
          if (answer instanceof Error) throw answer
          return answer === 'never' ? new Promise<never>(() => {}) : { json: async () => answer }
        },
      }
      return stub
    },
  }
  return { namespace, asked }
}

const open = (namespace: ObjectNamespace, timeoutMs = 500) =>
  openInbox(durableObjectInbox({ namespace, timeoutMs }), silent).inbox

test('an object that fails is asked again by a new stub, within the time', async () => {
  const { namespace, asked } = objects(new Error('internal error'), new Error('internal error'), {
    result: 'duplicate',
  })
  expect(await open(namespace).accept(eventOf('one'))).toBe('duplicate')
  expect(new Set(asked.map(({ stub }) => stub)).size).toBe(3)
  expect(new Set(asked.map(({ name }) => name)).size).toBe(1)
})

test.each(['never', new Error('internal error')] as const)(
  'an object that does not answer in time (%s) is unavailable',
  async (answer) => {
    const { namespace } = objects(answer)
    await expect(open(namespace, 60).accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
  },
)

test('an object that the platform says is overloaded is not asked again', async () => {
  const { namespace, asked } = objects(Object.assign(new Error('too many requests'), { overloaded: true }))
  await expect(open(namespace).accept(eventOf('one'))).rejects.toMatchObject({ code: 'overloaded' })
  expect(asked).toHaveLength(1)
})

test('an error that the object answers with is its error', async () => {
  const { namespace, asked } = objects({ error: { code: 'closing', message: 'the inbox is closing' } })
  const error = await Promise.resolve(open(namespace).accept(eventOf('one'))).catch((thrown: unknown) => thrown)
  expect([error instanceof WebhookError, (error as WebhookError).code, asked.length]).toEqual([true, 'closing', 1])
})

test('a full object answers the sender 503, and so does a failing one', async () => {
  const statusWith = async (answer: Answer) => {
    const { namespace } = objects(answer)
    const receiver = createReceiver({
      verify: unverified(),
      inbox: durableObjectInbox({ namespace }),
      logger: silent,
    }).onAny(() => {})
    const body = new TextEncoder().encode('{"type":"encoding.finished","media_id":"a"}')
    const { status, outcome } = await receiver.receive({ method: 'POST', url: '/', headers: new Headers(), body })
    return [status, outcome]
  }
  expect(await statusWith({ result: 'accepted' })).toEqual([200, 'accepted'])
  expect(await statusWith({ result: 'overloaded' })).toEqual([503, 'overloaded'])
  expect(await statusWith({ error: { code: 'unavailable', message: 'no' } })).toEqual([503, 'unavailable'])
})

test('a replay is not repeated: it may have been carried out', async () => {
  const deadLetter = {
    text: JSON.stringify({ completed: [], letter: { key: 'one', event: eventOf('one').event } }),
    body: null,
  }
  const answers = [...Array.from({ length: 2 }, () => ({ result: deadLetter })), new Error('internal error')]
  const { namespace, asked } = objects(...answers)
  const { inbox } = openInbox(durableObjectInbox({ namespace, shards: 2 }), silent)
  await expect(Promise.resolve(inbox.deadLetters.replay('one'))).rejects.toMatchObject({ code: 'unavailable' })
  expect(asked.map(({ step }) => step)).toEqual(['get', 'get', 'replay'])
})

test('the events of one media item go to one of the objects, and those of many to all', async () => {
  const { namespace, asked } = objects({ result: 'accepted' })
  const inbox = open(namespace)
  for (let i = 0; i < 200; i++) await inbox.accept(eventOf(`key ${i}`))
  expect(new Set(asked.map(({ name }) => name)).size).toBe(16)
  await Promise.all([eventOf('a', 'media'), eventOf('b', 'media')].map((accepted) => inbox.accept(accepted)))
  expect(asked.at(-1)?.name).toBe(asked.at(-2)?.name)
  // These must never change: an event would be looked for in another object.
  expect(['media', '映画', ''].map((text) => shardOf(text, 16))).toEqual([3, 12, 5])
})

test('a namespace that is not a binding is an immediate error, with the fix', () => {
  for (const make of [durableObjectInbox, durableObjectStore])
    expect(() => make({ namespace: untyped(undefined) })).toThrow(/declare it in durable_objects/)
})
