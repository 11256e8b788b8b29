import { WebhookError } from '../errors.ts'
import { eventTypes } from '../events/media-service/catalogue.ts'
import {
  aFunction,
  checkOptions,
  having,
  type Rule,
  type Rules,
  required,
  wholeNumber,
} from '../internal/check-options.ts'
import { guarded } from '../internal/guarded.ts'
import { type Timer, unref } from '../internal/timers.ts'
import type { DeliveryReport } from '../receiver/hooks.ts'
import type { Receiver } from '../receiver/options.ts'
import { ApiError } from './api-error.ts'
import type { Client } from './client.ts'
import { isSameUrl } from './register-webhook.ts'
import { subscription } from './subscriptions.ts'
import type { Webhook } from './webhook.ts'

/** A problem of a webhook that {@link watchWebhook} found, or that is solved again. */
export interface WebhookProblem {
  /**
   * - `deleted`: the service does not know the webhook.
   * - `moved`: its URL is not the one that it was registered with.
   * - `unsubscribed`: it does not get a type that the receiver handles.
   * - `silent`: the service has triggered it, and no delivery has arrived.
   * - `unchecked`: the check failed, at the service or at the inbox, so nothing new is known.
   */
  readonly kind: 'deleted' | 'moved' | 'unsubscribed' | 'silent' | 'unchecked'
  /** The problem in words, without the URL. */
  readonly message: string
  /** `true` if it no longer exists. */
  readonly solved: boolean
}

/** The options of {@link watchWebhook}. */
export interface WatchOptions {
  /** Asks the service for the webhook. */
  readonly client: Pick<Client, 'webhook'>
  /** The receiver whose events the webhook sends, with its handlers registered. */
  readonly receiver: Pick<Receiver, 'handles' | 'observe' | 'inbox' | 'setup'>
  /** The webhook as it was registered: `data.webhook` of `registerWebhook`. */
  readonly webhook: Pick<Webhook, 'id' | 'url'>
  /**
   * The time between two checks, in ms.
   * @defaultValue 300_000
   */
  readonly everyMs?: number
  /** Called once when a problem is found, and once when it is solved. The receiver's logger gets a line as well. */
  readonly onProblem?: (problem: WebhookProblem) => void
}

/** A running watch. */
export interface Watch {
  /** Ends it: nothing is reported any more. */
  stop(): void
}

/** Time between a delivery and `last_triggered_at`, in ms: the service sends, waits for the answer, and records it. */
const toleranceMs = 60_000

/**
 * Compares a webhook with its receiver, now and regularly: its existence, its URL, its event types, and whether what
 * the service says it has sent has arrived. Each problem is reported once. The timer does not keep the process alive.
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

type Kind = WebhookProblem['kind']

class WebhookWatch implements Watch {
  readonly #options: WatchOptions
  readonly #stopping = new AbortController()
  readonly #unobserve: () => void
  #known: ReadonlyMap<Kind, string> = new Map()
  #timer: Timer | undefined
  /** The time of the newest delivery in this process. One that arrived before the watch is unknown, and counts as seen. */
  #seenAt = Date.now()
  #previous: { readonly at: number; readonly lastTriggeredAt: string | undefined } | undefined
  /** The time since which no delivery has arrived that the service says it has sent. */
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

  /** What is known stays: the first reason is the one that is reported. */
  #unchecked(error: unknown): Map<Kind, string> {
    const reason = error instanceof ApiError ? error.message : 'the inbox cannot tell what has arrived'
    const known = this.#known.get('unchecked')
    return new Map(this.#known).set('unchecked', known ?? `the webhook could not be checked: ${reason}`)
  }

  async #check(): Promise<Map<Kind, string>> {
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
    const found = new Map<Kind, string>()
    if (webhook.url && registered.url && !isSameUrl(webhook.url, registered.url))
      found.set('moved', 'the URL of the webhook has changed: its events go elsewhere')
    const missing = eventTypes.filter((type) => receiver.handles(type) && webhook[subscription(type)] === false)
    if (missing.length > 0)
      found.set('unsubscribed', `the webhook is not subscribed to ${missing.join(', ')}, which the receiver handles`)
    if (await this.#isSilent(webhook))
      found.set(
        'silent',
        'the service has triggered the webhook, and no delivery has arrived: check the way to the receiver',
      )
    return found
  }

  /** Returns `true` if the service had triggered the webhook before the previous check, and nothing has arrived since. */
  async #isSilent({ lastTriggeredAt }: Webhook): Promise<boolean> {
    const previous = this.#previous
    const isSilent = this.#silentSince !== undefined && !(await this.#hasArrivedSince(this.#silentSince))
    if (!isSilent) {
      const since = (previous?.at ?? 0) - toleranceMs
      const isTriggered = previous !== undefined && previous.lastTriggeredAt !== lastTriggeredAt
      // A delivery may still be on its way, so that the next check decides.
      this.#silentSince = isTriggered && !(await this.#hasArrivedSince(since)) ? since : undefined
    }
    this.#previous = { at: Date.now(), lastTriggeredAt }
    return isSilent
  }

  /** Returns `true` if this process, or another one of its inbox, got a delivery. */
  async #hasArrivedSince(time: number): Promise<boolean> {
    if (this.#seenAt >= time) return true
    const minutes = await this.#options.receiver.inbox.activity?.(new Date(time))
    return minutes?.some(({ accepted, duplicates, ignored }) => accepted + duplicates + ignored > 0) ?? false
  }

  #report(found: ReadonlyMap<Kind, string>): void {
    const known = this.#known
    this.#known = found
    for (const [kind, message] of found) if (known.get(kind) !== message) this.#notify({ kind, message, solved: false })
    // The other problems of a deleted webhook are not solved.
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

/** Anyone can send a delivery that is rejected before its body is parsed. */
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
