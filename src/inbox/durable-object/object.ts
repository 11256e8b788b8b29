import { WebhookError } from '../../errors.ts'
import { checkOptions } from '../../internal/check-options.ts'
import { consoleLogger } from '../../internal/logger.ts'
import {
  answerAsObject,
  type ObjectSql,
  type ObjectState,
  type ObjectSteps,
} from '../../internal/storage/durable-objects.ts'
import { defineInbox } from '../define-inbox.ts'
import { reviveAccepted } from '../engine/stored.ts'
import type { AcceptedEvent, Inbox, InboxDefinition } from '../inbox.ts'
import type { EventQuery, NewOperation, OperationQuery, PauseOptions, ResumeOptions } from '../reading.ts'
import { type InboxLimits, limitRules, readLimits } from '../sqlite/database.ts'
import type { Synchronous } from '../sqlite/transactions.ts'
import { ObjectInbox } from './inbox.ts'
import { type KeysQuery, type PageRange, packDeadLetter, unpackUnreadable, type WireUnreadable } from './wire.ts'

/** What `inboxObject` adds to a handler's context. */
export interface ObjectTransactional<Sql extends ObjectSql = ObjectSql> {
  /**
   * Runs `run` in a transaction of the object's storage, and commits its writes together with the record that this
   * handler has completed: both or neither. After that the handler never runs again for this event. An error of `run`
   * or an aborted signal rolls everything back. A handler can call it once. What the handler does afterwards is not
   * repeated if it fails.
   *
   * `run` is synchronous. It writes to the shard of the event's media item, beside the inbox's own tables, whose names
   * begin with `inbox_`. `sql` and its cursors work until `run` returns.
   *
   * @throws WebhookError `invalid_transaction` if `run` returns a promise or uses `sql` after its end, or the signal's
   * reason. Throws `invalid_transaction` synchronously, instead of rejecting, when called again or after the handler
   * has ended
   */
  transaction<Result>(run: (sql: Sql) => Synchronous<Result>): Promise<Result>
}

/** The options of `inboxObject`. Limits are per object, of which there are as many as shards. */
export interface InboxObjectOptions extends InboxLimits {}

/** A Durable Object that is an inbox. The platform calls its methods. */
export interface InboxObject {
  /** Never set. Cloudflare's types require it of a class in a `DurableObjectNamespace`. */
  readonly __DURABLE_OBJECT_BRAND: never
  fetch(request: Request): Promise<Response>
  alarm(): Promise<void>
}

const receiverRetryMs = 60_000

/**
 * Makes the Durable Object class behind `durableObjectInbox`. Export it from the Worker's module, under the name in the
 * configuration.
 *
 * ```ts
 * export class MediaInbox extends inboxObject((env: Env, inbox) =>
 *   createReceiver({ verify: urlToken({ secret: env.WEBHOOK_TOKEN }), inbox }).on('encoding.finished', publish),
 * ) {}
 * ```
 * @param makeReceiver makes the receiver with the inbox it is given. Its handlers run in the object
 * @typeParam Env the type of the Worker's bindings
 * @throws WebhookError `invalid_option`
 */
export function inboxObject<Env = unknown, Sql extends ObjectSql = ObjectSql>(
  makeReceiver: (env: Env, inbox: InboxDefinition<ObjectTransactional<Sql>>) => { readonly inbox: Inbox },
  options: InboxObjectOptions = {},
): new (
  state: ObjectState,
  env: Env,
) => InboxObject {
  checkOptions('inboxObject', options, limitRules)
  const limits = readLimits(options)
  if (typeof makeReceiver !== 'function')
    throw new WebhookError('invalid_option', 'inboxObject: pass a function that makes a receiver')

  return class {
    declare readonly __DURABLE_OBJECT_BRAND: never
    readonly #state: ObjectState
    readonly #opened: ObjectInbox | WebhookError

    constructor(state: ObjectState, env: Env) {
      this.#state = state
      this.#opened = openInbox(state, limits, (inbox) => makeReceiver(env, inbox))
    }

    fetch(request: Request): Promise<Response> {
      return answerAsObject(request, () => {
        if (this.#opened instanceof WebhookError) throw this.#opened
        return inboxSteps(this.#opened)
      })
    }

    async alarm(): Promise<void> {
      if (!(this.#opened instanceof WebhookError)) return this.#opened.alarm()
      // Events may be waiting for a version of the Worker that can make its receiver.
      await this.#state.storage.setAlarm(Date.now() + receiverRetryMs)
    }
  }
}

function openInbox(
  { storage }: ObjectState,
  limits: Required<InboxLimits>,
  make: (inbox: InboxDefinition<never>) => unknown,
): ObjectInbox | WebhookError {
  let opened: ObjectInbox | undefined
  const open: InboxDefinition['open'] = (host) => {
    opened = new ObjectInbox(host, storage, limits)
    return opened
  }
  try {
    make(
      defineInbox<never>({
        name: 'inboxObject',
        storage: 'database',
        outlivesRequests: true,
        expects: true,
        ordersStrictly: true,
        limits: true,
        open,
      }),
    )
    if (opened !== undefined) return opened
    throw new WebhookError('invalid_option', 'the function must pass its inbox to createReceiver')
  } catch (cause) {
    const message = `the Durable Object could not make its receiver: ${(cause as Error)?.message}`
    consoleLogger.error({ err: cause }, message)
    return new WebhookError('unavailable', message, { cause })
  }
}

const inboxSteps = (inbox: ObjectInbox): ObjectSteps => ({
  accept: (accepted: AcceptedEvent) => inbox.accept(reviveAccepted(accepted)),
  keepUnreadable: (unreadable: WireUnreadable) => inbox.keepUnreadable(unpackUnreadable(unreadable)),
  stats: () => inbox.stats(),
  expected: (limit: number) => inbox.expected(limit),
  list: async (page: PageRange) => (await inbox.deadLetters.list(page)).map(packDeadLetter),
  keys: ({ after, type, since }: KeysQuery) =>
    inbox.deadLetters.keysAfter(after, { type, since: since && new Date(since) }),
  async get(key: string) {
    const deadLetter = await inbox.deadLetters.get(key)
    return deadLetter && packDeadLetter(deadLetter)
  },
  replay: (key: string) => inbox.deadLetters.replay(key),
  events: (query: EventQuery) => inbox.page(query),
  event: (key: string) => inbox.events.get(key),
  outcomes: (keys: string[]) => inbox.events.outcomes(keys),
  retryNow: (key: string) => inbox.events.retryNow(key),
  stop: (key: string) => inbox.events.stop?.(key),
  history: (mediaId: string) => inbox.history(mediaId),
  discard: (key: string) => inbox.deadLetters.discard(key),
  operated: (operation: NewOperation) => inbox.operations.add(operation),
  operations: (query: OperationQuery) => inbox.operations.list(query),
  pauses: () => inbox.pauses.list(),
  pause: (options: PauseOptions) => inbox.pauses.pause(options),
  resume: (options: ResumeOptions) => inbox.pauses.resume(options),
})
