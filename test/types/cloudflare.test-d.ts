import type { DurableObjectNamespace, DurableObjectState, SqlStorage } from '@cloudflare/workers-types'
import { expectTypeOf, test } from 'vitest'
import { fetchHandler } from '../../adapters/fetch.ts'
import {
  durableObjectInbox,
  durableObjectStore,
  inboxObject,
  type ObjectSql,
  type ObjectTransactional,
  StoreObject,
} from '../../src/inbox/durable-object/cloudflare.ts'
import { createReceiver, type InboxDefinition, memoryInbox, unverified } from '../../src/index.ts'

interface Env {
  readonly MEDIA_INBOX: DurableObjectNamespace
  readonly MEDIA_KEYS: DurableObjectNamespace
}
declare const env: Env
declare const state: DurableObjectState

test('the bindings and the state of a Worker fit', () => {
  const makeReceiver = (_: Env, inbox: InboxDefinition<ObjectTransactional>) =>
    createReceiver({ verify: unverified(), inbox }).on('encoding.finished', async (event, { transaction }) => {
      await transaction((sql) => {
        expectTypeOf(sql).toEqualTypeOf<ObjectSql>()
        sql.exec('INSERT INTO finished VALUES (?)', event.mediaId)
      })
    })
  const MediaInbox = inboxObject(makeReceiver)
  new MediaInbox(state, env)
  new StoreObject(state)
  fetchHandler((env: Env) => makeReceiver(env, durableObjectInbox({ namespace: env.MEDIA_INBOX })))
  memoryInbox({ store: durableObjectStore({ namespace: env.MEDIA_KEYS }) })
})

test('the class can be named in the type of the binding, as `wrangler types` does', () => {
  class MediaInbox extends inboxObject((_: unknown, inbox) => createReceiver({ verify: unverified(), inbox })) {}
  const bindings = {} as {
    readonly inbox: DurableObjectNamespace<MediaInbox>
    readonly keys: DurableObjectNamespace<StoreObject>
  }
  durableObjectInbox({ namespace: bindings.inbox })
  durableObjectStore({ namespace: bindings.keys })
})

test('handlers can have the type that the vendor gives the storage', () => {
  inboxObject((_: Env, inbox: InboxDefinition<ObjectTransactional<SqlStorage>>) =>
    createReceiver({ verify: unverified(), inbox }).onAny((_, { transaction }) =>
      transaction((sql) => sql.exec<{ count: number }>('SELECT count(*) AS count FROM finished').one().count),
    ),
  )
})

test('a receiver is made with the inbox that it is given, and a transaction is synchronous', () => {
  // @ts-expect-error It returns no receiver.
  inboxObject((_: Env) => 'nothing')
  // @ts-expect-error A binding is not a class.
  durableObjectInbox({ namespace: class {} })
  inboxObject((_: Env, inbox) =>
    createReceiver({ verify: unverified(), inbox }).onAny(async (_, { transaction }) => {
      // @ts-expect-error The function returns a promise.
      await transaction(async (sql) => sql.exec('SELECT 1'))
    }),
  )
})
