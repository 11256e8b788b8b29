import { WebhookError } from '../../../errors.ts'
import { flatBody, makeBody, type Payload } from '../../../testing/payload.ts'
import type { Changes } from '../shared/changes.ts'
import type { Clock } from '../shared/clock.ts'
import { RecentItems } from '../shared/recent-items.ts'
import { type Courier, createCourier } from './courier.ts'
import { Holds } from './holds.ts'
import { LiveSendings } from './live-sendings.ts'
import { type Profile, testTimeoutMs } from './profile.ts'
import { parseTarget } from './request.ts'
import type { Behaviour, DeliveryRecord, Sending } from './sending.ts'
import { makeEventId, signerFor } from './signing.ts'

export interface OutboxOptions {
  readonly profile: Profile
  /** Scales delays, not timeouts. */
  readonly timeScale: number
  readonly maxWaiting: number
  readonly maxRecords: number
  readonly clock: Clock
  readonly changes: Changes
  /**
   * Called when a webhook counts as triggered: by a new sending (`documented`) or by an acknowledged one (`observed`).
   */
  readonly triggered: (sending: Sending) => void
  /** Called with each recorded delivery, test deliveries included. */
  readonly delivered: (delivery: DeliveryRecord, sending: Sending) => void
}

export interface SendingTarget {
  readonly id: string
  readonly url: string
}

/** The queue of test deliveries. They don't queue behind events, because a caller waits for the result. */
const testQueue = 'test deliveries'

/**
 * Sends events to webhooks concurrently and records every delivery. A returned `Sending` is a snapshot; `get` returns
 * the current state. Methods that send throw a WebhookError: `invalid_option` if the URL is not http or https,
 * `overloaded` if too many sendings are unfinished, `closing` after `close`.
 */
export class Outbox {
  readonly #profile: Profile
  readonly #courier: Courier
  readonly #testCourier: Courier
  readonly #holds: Holds
  readonly #records: RecentItems<Sending>
  readonly #live: LiveSendings
  #closed = false

  constructor({ profile, timeScale, maxWaiting, maxRecords, clock, changes, triggered, delivered }: OutboxOptions) {
    this.#profile = profile
    this.#courier = createCourier({ profile, timeScale, clock })
    this.#testCourier = createCourier({ timeoutMs: testTimeoutMs, clock })
    this.#holds = new Holds(timeScale)
    this.#records = new RecentItems({
      name: 'events',
      hasEnded: ({ state }) => state === 'acknowledged' || state === 'failed' || state === 'dropped',
      maxUnfinished: maxWaiting,
      maxEnded: maxRecords,
      onChange: (id) => changes.notify({ kind: 'sendings', id }),
    })
    this.#live = new LiveSendings({ records: this.#records, clock, profile, triggered, delivered })
  }

  /** @param body an edited body; the payload's by default */
  send(target: SendingTarget, payload: Payload, behaviour: Behaviour = {}, body?: string): Sending {
    this.#checkTargets([target])
    return this.#send(target, payload, behaviour, body)
  }

  /** Sends an event to several webhooks, or to none of them if too many sendings are unfinished. */
  sendToAll(
    targets: readonly (SendingTarget & { readonly behaviour?: Behaviour })[],
    payload: Payload,
  ): readonly Sending[] {
    this.#checkTargets(targets)
    return targets.map((target) => this.#send(target, payload, target.behaviour ?? {}))
  }

  /**
   * Makes the test delivery: once, within 1 s, without a fault. Acknowledged by any 2xx (`documented`) or only by 200
   * (`observed`). Resolves with the ended sending and its one delivery.
   */
  async check(target: SendingTarget, payload: Payload, { format, sign }: Behaviour = {}): Promise<Sending> {
    this.#checkTargets([target])
    const signer = sign && signerFor(sign, makeEventId(flatBody(payload)))
    const behaviour = { ...(format && { format }), ...(sign && { sign }) }
    const sending = this.#live.create({ webhookId: target.id, url: target.url, payload, behaviour })
    const checked = await this.#live.run(sending, testQueue, async ({ signal, turn }) => {
      const endTurn = await turn()
      const options = { sign: signer, signal }
      const delivery = await this.#testCourier.deliver(target.url, makeBody(payload, format), options).finally(endTurn)
      return [this.#profile === 'observed' ? needing200(delivery) : delivery]
    })
    if (checked.deliveries.length > 0) return checked
    // Ended before its turn.
    throw this.#closed ? closing() : new WebhookError('invalid_option', 'the webhook was deleted')
  }

  get(id: string): Sending | undefined {
    return this.#records.get(id)
  }

  /** Lists the kept sendings, newest first. */
  list(): readonly Sending[] {
    return this.#records.list()
  }

  idle(): Promise<void> {
    return this.#records.idle()
  }

  /** Gives up a webhook's unfinished sendings, for example after it was deleted. Deliveries in progress finish. */
  stop(webhookId: string): void {
    this.#live.stop(webhookId)
  }

  /** Gives up unfinished sendings and cuts off deliveries in progress. */
  async close(): Promise<void> {
    this.#closed = true
    this.#live.abort()
    await this.idle()
  }

  /** @throws WebhookError `invalid_option`, `overloaded` or `closing` */
  #checkTargets(targets: readonly SendingTarget[]): void {
    if (this.#closed) throw closing()
    for (const { url } of targets) parseTarget(url)
    if (targets.length > 0) this.#records.checkRoom()
  }

  #send({ id: webhookId, url }: SendingTarget, payload: Payload, behaviour: Behaviour, body?: string): Sending {
    const { format, sign, fault } = behaviour
    const signer = sign && signerFor(sign, makeEventId(body ?? flatBody(payload)))
    const fields = { webhookId, url, payload, ...(body !== undefined && { body }), behaviour }
    const sending = this.#live.create(fields, fault === 'drop' ? 'dropped' : 'waiting')
    if (fault === 'drop') return sending

    const overtaken = this.#holds.overtake(webhookId)
    void this.#live.run(sending, webhookId, async (live) => {
      if (fault === 'reorder' && overtaken === undefined) await this.#holds.hold(webhookId, live.stop)
      const turn = async () => {
        const endTurn = await live.turn()
        return () => {
          endTurn()
          overtaken?.()
        }
      }
      const deliveryFault = fault === 'reorder' ? undefined : fault
      const sent = body ?? makeBody(payload, format)
      return this.#courier.send(url, sent, { ...live, turn, fault: deliveryFault, sign: signer })
    })
    return sending
  }
}

const closing = (): WebhookError => new WebhookError('closing', 'the emulator is closed')

/** Fails a test delivery unless its answer is exactly 200. */
function needing200(delivery: DeliveryRecord): DeliveryRecord {
  const { answer, failure } = delivery
  if (failure !== undefined || answer?.status === 200) return delivery
  return {
    ...delivery,
    failure: { reason: 'status', message: `answered ${answer?.status}: a test delivery needs exactly 200` },
  }
}
