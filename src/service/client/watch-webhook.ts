import { WebhookError } from '../../errors.ts'
import { eventTypes } from '../../events/media-service/catalogue.ts'
import {
  aFunction,
  checkOptions,
  having,
  type Rule,
  type Rules,
  required,
  wholeNumber,
} from '../../internal/check-options.ts'
import { guarded } from '../../internal/guarded.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { DeliveryReport } from '../../receiver/hooks.ts'
import type { Receiver } from '../../receiver/options.ts'
import { ApiError } from './api-error.ts'
import type { Client } from './client.ts'
import { isSameUrl } from './register-webhook.ts'
import { subscription } from './subscriptions.ts'
import type { Webhook } from './webhook.ts'

/** A problem that {@link watchWebhook} found, or that has been solved. */
export interface WebhookProblem {
  /**
   * - `deleted`: the service doesn't know the webhook.
   * - `moved`: its URL is no longer the registered one.
   * - `unsubscribed`: it isn't subscribed to a type that the receiver handles.
   * - `silent`: the service has triggered it, but no delivery has arrived.
   * - `unchecked`: the service or the inbox failed, so the check found out nothing.
   */
  readonly kind: 'deleted' | 'moved' | 'unsubscribed' | 'silent' | 'unchecked'
  /** A description, without the URL. */
  readonly message: string
  /** `true` once it is solved. */
  readonly solved: boolean
}

/** The options of {@link watchWebhook}. */
export interface WatchOptions {
  /** Asked for the webhook. */
  readonly client: Pick<Client, 'webhook'>
  /** The receiver of the webhook's events, with its handlers registered. */
  readonly receiver: Pick<Receiver, 'handles' | 'observe' | 'inbox' | 'setup'>
  /** The registered webhook: `data.webhook` of `registerWebhook`. */
  readonly webhook: Pick<Webhook, 'id' | 'url'>
  /**
   * Time between checks, in ms.
   * @defaultValue 300_000
   */
  readonly everyMs?: number
  /** Called once when a problem appears, and once when it is solved. Both are logged too. */
  readonly onProblem?: (problem: WebhookProblem) => void
}

/** A running watch. */
export interface Watch {
  /** Ends the watch. Nothing is reported after that. */
  stop(): void
}

/** How far `last_triggered_at` may lag a delivery (ms): the service sends, waits for the answer and records it. */
const toleranceMs = 60_000

/**
 * Compares a webhook with its receiver, now and at every interval: does it exist, is its URL right, is it subscribed to
 * what the receiver handles, and has what the service says it sent arrived? Reports each problem once. The timer
 * doesn't keep the process alive.
 *
 * ```ts
 * const { data } = await registerWebhook(client, receiver, { url })
 * const watch = watchWebhook({ client, receiver, webhook: data.webhook, onProblem: ({ message }) => alertOperators(message) })
 * ```
 * @throws WebhookError `invalid_option`
 */
export function watchWebhook(options: WatchOptions): Watch {
  checkOptions('watchWebhook', options, rules)
  return new WebhookWatch(options)
}

type ProblemKind = WebhookProblem['kind']

class WebhookWatch implements Watch {
  readonly #options: WatchOptions
  readonly #stopping = new AbortController()
  readonly #unobserve: () => void
  #known: ReadonlyMap<ProblemKind, string> = new Map()
  #timer: Timer | undefined
  /** When this process last got a delivery. Starts at now: earlier ones are unknown and count as seen. */
  #seenAt = Date.now()
  #previous: { readonly at: number; readonly lastTriggeredAt: string | undefined } | undefined
  /** Set while a delivery that the service says it has sent is missing: the time since when nothing has arrived. */
  #silentSince: number | undefined

  constructor(options: WatchOptions) {
    this.#options = options
    this.#unobserve = options.receiver.observe({
      delivery: (report) => {
        if (isFromSender(report)) this.#seenAt = Date.now()
      },
    })
    void this.#run()
  }

  stop(): void {
    this.#unobserve()
    clearTimeout(this.#timer)
    this.#stopping.abort(new WebhookError('closing', 'the watch was stopped'))
  }

  async #run(): Promise<void> {
    const found = await this.#check().catch((error) => this.#unchecked(error))
    if (this.#stopping.signal.aborted) return
    this.#report(found)
    this.#timer = setTimeout(() => void this.#run(), this.#options.everyMs ?? 300_000)
    unref(this.#timer)
  }

  /** Keeps the known problems, and the first reason. */
  #unchecked(error: unknown): Map<ProblemKind, string> {
    const reason = error instanceof ApiError ? error.message : 'the inbox cannot tell what has arrived'
    const known = this.#known.get('unchecked')
    return new Map(this.#known).set('unchecked', known ?? `the webhook could not be checked: ${reason}`)
  }

  async #check(): Promise<Map<ProblemKind, string>> {
    const { client, receiver, webhook: registered } = this.#options
    const webhook = await client.webhook.get(registered.id, { signal: this.#stopping.signal }).then(
      ({ data }) => data.webhook,
      (error) => {
        if (error instanceof ApiError && error.code === 'not_found') return undefined
        throw error
      },
    )
    if (webhook === undefined)
      return new Map([
        ['deleted', 'the webhook was deleted: no events arrive until registerWebhook creates another one'],
      ])
    const found = new Map<ProblemKind, string>()
    if (webhook.url && registered.url && !isSameUrl(webhook.url, registered.url))
      found.set('moved', 'the URL of the webhook has changed: its events go elsewhere')
    const missing = eventTypes.filter((type) => receiver.handles(type) && webhook[subscription(type)] === false)
    if (missing.length > 0)
      found.set('unsubscribed', `the webhook is not subscribed to ${missing.join(', ')}, which the receiver handles`)
    if (await this.#isSilent(webhook))
      found.set(
        'silent',
        'the service has triggered the webhook, but no delivery has arrived: check the route to the receiver',
      )
    return found
  }

  /** Returns `true` if the service triggered the webhook before the previous check and nothing has arrived since. */
  async #isSilent({ lastTriggeredAt }: Webhook): Promise<boolean> {
    const previous = this.#previous
    const isSilent = this.#silentSince !== undefined && !(await this.#hasArrivedSince(this.#silentSince))
    if (!isSilent) {
      const since = (previous?.at ?? 0) - toleranceMs
      const isTriggered = previous !== undefined && previous.lastTriggeredAt !== lastTriggeredAt
      // The delivery may still be in flight: let the next check decide.
      this.#silentSince = isTriggered && !(await this.#hasArrivedSince(since)) ? since : undefined
    }
    this.#previous = { at: Date.now(), lastTriggeredAt }
    return isSilent
  }

  /** Returns `true` if this process, or another one with the same inbox, got a delivery. */
  async #hasArrivedSince(time: number): Promise<boolean> {
    if (this.#seenAt >= time) return true
    const minutes = await this.#options.receiver.inbox.activity?.(new Date(time))
    return minutes?.some(({ accepted, duplicates, ignored }) => accepted + duplicates + ignored > 0) ?? false
  }

  #report(found: ReadonlyMap<ProblemKind, string>): void {
    const known = this.#known
    this.#known = found
    for (const [kind, message] of found) if (known.get(kind) !== message) this.#notify({ kind, message, solved: false })
    // The other problems of a deleted webhook aren't solved.
    if (found.has('deleted')) return
    for (const [kind, message] of known) if (!found.has(kind)) this.#notify({ kind, message, solved: true })
  }

  #notify(problem: WebhookProblem): void {
    const { receiver, webhook, onProblem } = this.#options
    const { logger } = receiver.setup
    const { kind, message, solved } = problem
    const level = solved ? 'info' : kind === 'unchecked' ? 'warn' : 'error'
    logger[level]({ kind, webhook: webhook.id }, solved ? `solved: ${message}` : message)
    guarded(
      () => onProblem?.(problem),
      (err) => logger.error({ err }, 'onProblem threw'),
    )
  }
}

/** Anyone can cause a rejection that comes before parsing. */
const isFromSender = ({ type, outcome }: DeliveryReport): boolean => type !== undefined || outcome === 'malformed'

const aWebhook: Rule = [
  'data.webhook of registerWebhook()',
  (value: Partial<Webhook> | null) => typeof value?.id === 'string',
]

const aClient: Rule = [
  'a client from createClient()',
  (value: Partial<Client> | null) => typeof value?.webhook?.get === 'function',
]

const rules: Rules<WatchOptions> = {
  client: required(aClient),
  receiver: required(having('a receiver from createReceiver()', 'observe')),
  webhook: required(aWebhook),
  everyMs: wholeNumber(),
  onProblem: aFunction,
}
