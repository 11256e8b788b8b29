import { checkedApart, checkOptions, wholeNumber } from '../internal/check-options.ts'
import {
  checkNamespace,
  defaultShards,
  type ObjectNamespace,
  type ObjectSql,
} from '../internal/storage/durable-objects.ts'
import { defineInbox } from './define-inbox.ts'
import type { ObjectTransactional } from './durable-object/object.ts'
import { WorkerInbox } from './durable-object/worker-inbox.ts'
import type { InboxDefinition } from './inbox.ts'

export type { ObjectNamespace, ObjectSql, ObjectState, ObjectStorage } from '../internal/storage/durable-objects.ts'
export {
  type InboxObject,
  type InboxObjectOptions,
  inboxObject,
  type ObjectTransactional,
} from './durable-object/object.ts'
export type { Synchronous } from './sqlite/transactions.ts'

/** The options of `durableObjectInbox`. */
export interface DurableObjectInboxOptions {
  /** The binding to the class that {@link inboxObject} made. */
  readonly namespace: ObjectNamespace
  /**
   * Number of objects. The events of one media item go to one object. Choose it once: after a change, a repeated
   * delivery can be handled twice, and a smaller number hides the dead letters of the objects left out.
   * @defaultValue 16
   */
  readonly shards?: number
  /**
   * Time an object has to store an event, retries included (ms). Past it, the delivery is answered 503 `unavailable`.
   * @defaultValue 2_500
   */
  readonly timeoutMs?: number
}

/**
 * An inbox in Durable Objects, as seen by the Worker that receives the deliveries: acknowledged events survive the end
 * of any request, isolate or machine. The Worker hands each event to the object of its media item, where the handlers
 * run.
 *
 * ```ts
 * const makeReceiver = (env: Env, inbox: InboxDefinition) =>
 *   createReceiver({ verify: urlToken({ secret: env.WEBHOOK_TOKEN }), inbox }).on('encoding.finished', publish)
 *
 * export class MediaInbox extends inboxObject(makeReceiver) {}
 * export default {
 *   fetch: fetchHandler((env: Env) => makeReceiver(env, durableObjectInbox({ namespace: env.MEDIA_INBOX }))),
 * }
 * ```
 * @throws WebhookError `invalid_option`
 */
export function durableObjectInbox<Sql extends ObjectSql = ObjectSql>(
  options: DurableObjectInboxOptions,
): InboxDefinition<ObjectTransactional<Sql>> {
  const rules = { namespace: checkedApart, shards: wholeNumber(), timeoutMs: wholeNumber() }
  checkOptions('durableObjectInbox', options, rules)
  const { namespace, shards = defaultShards, timeoutMs = 2_500 } = options ?? {}
  checkNamespace('durableObjectInbox', namespace, 'env.MEDIA_INBOX')
  return defineInbox({
    name: 'durableObjectInbox',
    expects: true,
    ordersStrictly: true,
    limits: true,
    storage: 'handed-over',
    open: (host) => new WorkerInbox(host, { namespace, shards, timeoutMs }),
  })
}
