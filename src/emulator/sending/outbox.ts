import { WebhookError } from '../../errors.ts'
import { bodyOf, type Payload } from '../../testing/payload.ts'
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

/** The options of {@link createOutbox}. */
export interface OutboxOptions {
  readonly profile: Profile
  /** Multiplies every pause; time limits stay as they are. */
  readonly timeScale: number
  /** How many sendings may be unfinished at once. */
  readonly maxWaiting: number
  /** How many finished sendings are kept. */
  readonly maxRecords: number
  readonly clock: Clock
  readonly changes: Changes
  /** Told of each sending that was acknowledged, a test delivery included. */
  readonly acknowledged: (sending: Sending) => void
}

/** The webhook that an event is sent to. */
export interface Target {
  readonly id: string
  readonly url: string
}

/**
 * Sends events to webhooks, many at once, and records what becomes of them. A `Sending` it returns is a picture of the
 * moment; `get` has the next one. What begins a sending throws a WebhookError: `invalid_option` when its URL is not http
 * or https, `overloaded` when too many are unfinished, `closing` after `close`.
 */
export interface Outbox {
  /** Sends an event. */
  send(target: Target, payload: Payload, behaviour?: Behaviour): Sending
  /** Sends an event to several webhooks, or, when too many sendings are unfinished, to none of them. */
  sendToAll(targets: readonly (Target & { readonly behaviour?: Behaviour })[], payload: Payload): readonly Sending[]
  /**
   * Makes the test delivery: one, within 1 s, without a fault. Resolves when it is over, with that one delivery; only 200
   * acknowledges it.
   */
  check(target: Target, payload: Payload, behaviour?: Behaviour): Promise<Sending>
  get(id: string): Sending | undefined
  /** Those that are kept, the newest one first. */
  list(): readonly Sending[]
  /** Resolves when no sending is unfinished. */
  idle(): Promise<void>
  /** Gives up what is unfinished, and cuts off what is on its way. */
  close(): Promise<void>
}

export function createOutbox(options: OutboxOptions): Outbox {
  return new ServiceOutbox(options)
}

/** The lane of all test deliveries: somebody waits for them. */
const testLane = 'test deliveries'

class ServiceOutbox implements Outbox {
  readonly #sender: Sender
  readonly #tester: Sender
  readonly #holds: Holds
  readonly #records: Records<Sending>
  readonly #runs: SendingRuns
  #closed = false

  constructor({ profile, timeScale, maxWaiting, maxRecords, clock, changes, acknowledged }: OutboxOptions) {
    this.#sender = createSender({ profile, timeScale, clock })
    this.#tester = createSender({ timeoutMs: testTimeoutMs, clock })
    this.#holds = new Holds(timeScale)
    this.#records = new Records({
      name: 'events',
      isOver: ({ state }) => state === 'acknowledged' || state === 'failed' || state === 'dropped',
      maxUnfinished: maxWaiting,
      maxOver: maxRecords,
      changed: (id) => changes.notify({ kind: 'sendings', id }),
    })
    this.#runs = new SendingRuns(this.#records, clock, acknowledged)
  }

  send(target: Target, payload: Payload, behaviour: Behaviour = {}): Sending {
    this.#checkTargets([target])
    return this.#send(target, payload, behaviour)
  }

  sendToAll(targets: Parameters<Outbox['sendToAll']>[0], payload: Payload): readonly Sending[] {
    this.#checkTargets(targets)
    return targets.map((target) => this.#send(target, payload, target.behaviour ?? {}))
  }

  async check(target: Target, payload: Payload, { format, sign }: Behaviour = {}): Promise<Sending> {
    this.#checkTargets([target])
    const signer = sign && signerFor(sign, eventIdOf(payload))
    const behaviour = { ...(format && { format }), ...(sign && { sign }) }
    const sending = this.#runs.begin({ webhookId: target.id, url: target.url, payload, behaviour })
    const checked = await this.#runs.run(sending, testLane, async ({ signal, turn }) => {
      const leave = await turn()
      const options = { sign: signer, signal }
      return [needing200(await this.#tester.deliver(target.url, bodyOf(payload, format), options).finally(leave))]
    })
    // It was not its turn before the end.
    if (checked.deliveries.length === 0) throw closing()
    return checked
  }

  get(id: string): Sending | undefined {
    return this.#records.get(id)
  }

  list(): readonly Sending[] {
    return this.#records.list()
  }

  idle(): Promise<void> {
    return this.#records.idle()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#runs.abort()
    await this.idle()
  }

  /** @throws WebhookError when nothing can be sent to them */
  #checkTargets(targets: readonly Target[]): void {
    if (this.#closed) throw closing()
    for (const { url } of targets) parseTarget(url)
    if (targets.length > 0) this.#records.checkRoom()
  }

  #send({ id: webhookId, url }: Target, payload: Payload, behaviour: Behaviour): Sending {
    const { format, sign, fault } = behaviour
    const signer = sign && signerFor(sign, eventIdOf(payload))
    const sending = this.#runs.begin({ webhookId, url, payload, behaviour }, fault === 'drop' ? 'dropped' : 'waiting')
    if (fault === 'drop') return sending

    const overtaken = this.#holds.overtake(webhookId)
    void this.#runs.run(sending, webhookId, async (run) => {
      if (fault === 'reorder' && overtaken === undefined) await this.#holds.hold(webhookId, run.signal)
      const turn = async () => {
        const leave = await run.turn()
        return () => {
          leave()
          overtaken?.()
        }
      }
      const alone = fault === 'reorder' ? undefined : fault
      return this.#sender.send(url, bodyOf(payload, format), { ...run, turn, fault: alone, sign: signer })
    })
    return sending
  }
}

const closing = (): WebhookError => new WebhookError('closing', 'the emulator is closed')

/** A test delivery that was acknowledged in another way has failed. */
function needing200(delivery: DeliveryRecord): DeliveryRecord {
  const { answer, failure } = delivery
  if (failure !== undefined || answer?.status === 200) return delivery
  return {
    ...delivery,
    failure: { reason: 'status', message: `answered ${answer?.status}: a test delivery needs exactly 200` },
  }
}
