import { WebhookError } from '../../errors.ts'
import { bodyOf, flatBody, type Payload } from '../../testing/payload.ts'
import type { Changes } from '../shared/changes.ts'
import type { Clock } from '../shared/clock.ts'
import { Records } from '../shared/records.ts'
import { Holds } from './holds.ts'
import { type Profile, testTimeoutMs } from './profile.ts'
import { parseTarget } from './request.ts'
import { createSender, type Sender } from './sender.ts'
import type { Behaviour, DeliveryRecord, Sending } from './sending.ts'
import { SendingRuns } from './sending-runs.ts'
import { eventIdOf, signerFor } from './signing.ts'

/** The options of {@link Outbox}. */
export interface OutboxOptions {
  readonly profile: Profile
  /** Multiplies every pause. Time limits do not change. */
  readonly timeScale: number
  /** Maximum number of unfinished sendings. */
  readonly maxWaiting: number
  /** The number of finished sendings to keep. */
  readonly maxRecords: number
  readonly clock: Clock
  readonly changes: Changes
  /**
   * Called with a sending, test deliveries included, when the webhook counts as triggered. That is when its sending begins
   * (`documented`), or when it was acknowledged (`observed`).
   */
  readonly triggered: (sending: Sending) => void
  /** Called with each delivery once it is recorded, test deliveries included. */
  readonly delivered: (delivery: DeliveryRecord, sending: Sending) => void
}

/** The webhook that an event is sent to. */
export interface Target {
  readonly id: string
  readonly url: string
}

/** The lane of test deliveries. They do not queue behind events, because a caller waits for their result. */
const testLane = 'test deliveries'

/**
 * Sends events to webhooks, many at the same time, and records every delivery. A returned `Sending` is a snapshot;
 * `get` returns the current state. The methods that send throw a WebhookError: `invalid_option` when the URL is not
 * http or https, `overloaded` when too many sendings are unfinished, `closing` after `close`.
 */
export class Outbox {
  readonly #profile: Profile
  readonly #sender: Sender
  readonly #tester: Sender
  readonly #holds: Holds
  readonly #records: Records<Sending>
  readonly #runs: SendingRuns
  #closed = false

  constructor({ profile, timeScale, maxWaiting, maxRecords, clock, changes, triggered, delivered }: OutboxOptions) {
    this.#profile = profile
    this.#sender = createSender({ profile, timeScale, clock })
    this.#tester = createSender({ timeoutMs: testTimeoutMs, clock })
    this.#holds = new Holds(timeScale)
    this.#records = new Records({
      name: 'events',
      hasEnded: ({ state }) => state === 'acknowledged' || state === 'failed' || state === 'dropped',
      maxUnfinished: maxWaiting,
      maxEnded: maxRecords,
      onChange: (id) => changes.notify({ kind: 'sendings', id }),
    })
    this.#runs = new SendingRuns({ records: this.#records, clock, profile, triggered, delivered })
  }

  /**
   * Sends an event to a webhook.
   * @param body an edited body; by default that of the payload
   */
  send(target: Target, payload: Payload, behaviour: Behaviour = {}, body?: string): Sending {
    this.#checkTargets([target])
    return this.#send(target, payload, behaviour, body)
  }

  /** Sends an event to several webhooks, or to none of them when too many sendings are unfinished. */
  sendToAll(targets: readonly (Target & { readonly behaviour?: Behaviour })[], payload: Payload): readonly Sending[] {
    this.#checkTargets(targets)
    return targets.map((target) => this.#send(target, payload, target.behaviour ?? {}))
  }

  /**
   * Makes the test delivery: once, within 1 s, without a fault. Any 2xx acknowledges it (`documented`), or 200 alone
   * (`observed`). Resolves with the ended sending, which has this one delivery.
   */
  async check(target: Target, payload: Payload, { format, sign }: Behaviour = {}): Promise<Sending> {
    this.#checkTargets([target])
    const signer = sign && signerFor(sign, eventIdOf(flatBody(payload)))
    const behaviour = { ...(format && { format }), ...(sign && { sign }) }
    const sending = this.#runs.create({ webhookId: target.id, url: target.url, payload, behaviour })
    const checked = await this.#runs.run(sending, testLane, async ({ signal, turn }) => {
      const endTurn = await turn()
      const options = { sign: signer, signal }
      const delivery = await this.#tester.deliver(target.url, bodyOf(payload, format), options).finally(endTurn)
      return [this.#profile === 'observed' ? needing200(delivery) : delivery]
    })
    if (checked.deliveries.length > 0) return checked
    // This delivery never had its turn.
    throw this.#closed ? closing() : new WebhookError('invalid_option', 'the webhook was deleted')
  }

  get(id: string): Sending | undefined {
    return this.#records.get(id)
  }

  /** Lists the sendings that are kept, newest first. */
  list(): readonly Sending[] {
    return this.#records.list()
  }

  /** Resolves when no sending is unfinished. */
  idle(): Promise<void> {
    return this.#records.idle()
  }

  /** Gives up the unfinished sendings to a webhook, such as one that was deleted. Deliveries in progress end. */
  stop(webhookId: string): void {
    this.#runs.stop(webhookId)
  }

  /** Gives up unfinished sendings, and cuts off deliveries in progress. */
  async close(): Promise<void> {
    this.#closed = true
    this.#runs.abort()
    await this.idle()
  }

  /** @throws WebhookError when the targets cannot be sent to */
  #checkTargets(targets: readonly Target[]): void {
    if (this.#closed) throw closing()
    for (const { url } of targets) parseTarget(url)
    if (targets.length > 0) this.#records.checkRoom()
  }

  #send({ id: webhookId, url }: Target, payload: Payload, behaviour: Behaviour, body?: string): Sending {
    const { format, sign, fault } = behaviour
    const signer = sign && signerFor(sign, eventIdOf(body ?? flatBody(payload)))
    const fields = { webhookId, url, payload, ...(body !== undefined && { body }), behaviour }
    const sending = this.#runs.create(fields, fault === 'drop' ? 'dropped' : 'waiting')
    if (fault === 'drop') return sending

    const overtaken = this.#holds.overtake(webhookId)
    void this.#runs.run(sending, webhookId, async (run) => {
      if (fault === 'reorder' && overtaken === undefined) await this.#holds.hold(webhookId, run.stop)
      const turn = async () => {
        const endTurn = await run.turn()
        return () => {
          endTurn()
          overtaken?.()
        }
      }
      const deliveryFault = fault === 'reorder' ? undefined : fault
      const sent = body ?? bodyOf(payload, format)
      return this.#sender.send(url, sent, { ...run, turn, fault: deliveryFault, sign: signer })
    })
    return sending
  }
}

const closing = (): WebhookError => new WebhookError('closing', 'the emulator is closed')

/** Marks a test delivery as failed unless its answer is exactly 200. */
function needing200(delivery: DeliveryRecord): DeliveryRecord {
  const { answer, failure } = delivery
  if (failure !== undefined || answer?.status === 200) return delivery
  return {
    ...delivery,
    failure: { reason: 'status', message: `answered ${answer?.status}: a test delivery needs exactly 200` },
  }
}
