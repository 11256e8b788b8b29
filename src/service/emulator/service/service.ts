import { WebhookError } from '../../../errors.ts'
import { type EventType, flagName } from '../../../events/media-service/catalogue.ts'
import { checkOptions, wholeNumber } from '../../../internal/check-options.ts'
import type { Payload } from '../../../testing/payload.ts'
import { testPayload } from '../media/lifecycle.ts'
import { Studio } from '../media/studio.ts'
import { Outbox, type OutboxOptions } from '../sending/outbox.ts'
import type { Profile } from '../sending/profile.ts'
import type { Behaviour, DeliveryRecord, Sending } from '../sending/sending.ts'
import { Changes } from '../shared/changes.ts'
import { systemClock } from '../shared/clock.ts'
import { newIdOf } from '../shared/undocumented.ts'
import { randomText } from '../workspace/secret.ts'
import type { Webhook } from '../workspace/webhooks.ts'
import { type Credentials, Workspace } from '../workspace/workspace.ts'
import { readBehaviour } from './behaviour.ts'
import { readEdited } from './edited.ts'
import type { Emulator, EmulatorOptions } from './options.ts'
import { settled } from './settled.ts'

/**
 * The emulated service without HTTP, for the API, the control interface and the page. The methods of {@link Emulator}
 * validate their arguments, which may come from outside.
 */
export interface EmulatedService
  extends Pick<Emulator, 'credentials' | 'addMedia' | 'behave' | 'onDelivery' | 'repeat' | 'settled'> {
  readonly profile: Profile
  readonly timeScale: number
  /** Secrets set in the options. They may be real, so the page hides them. */
  readonly givenSecrets: ReadonlySet<keyof Credentials>
  readonly workspace: Workspace
  readonly outbox: Outbox
  readonly studio: Studio
  readonly changes: Changes
  /** Returns a webhook's behaviour: `{}` unless it was set. */
  behaviourOf(webhookId: string): Behaviour
  check(webhook: Webhook): Promise<DeliveryRecord>
  /** Sends an event to its webhook again, with an edited body. */
  sendEdited(sendingId: string, text: string): Sending
}

/** @param closing makes pending `settled` calls reject when it aborts */
export function createService(options: EmulatorOptions, closing: AbortSignal): EmulatedService {
  const { profile = 'documented', timeScale = 1, maxWaiting = 10_000, maxRecords = 2_000 } = options
  const { clock = systemClock, publicKey = random(), secretKey = random(), accessToken = random() } = options
  const credentials = { publicKey, secretKey, accessToken }
  const givenSecrets = new Set((['secretKey', 'accessToken'] as const).filter((name) => options[name] !== undefined))
  const newId = newIdOf[profile]
  const changes = new Changes()
  const workspace = new Workspace({ clock, newId, changes, credentials })
  const { webhooks, userId } = workspace
  const { behave, behaviourOf } = createBehaviours(workspace, changes)
  const triggered = ({ webhookId }: { readonly webhookId: string }) => webhooks.triggered(webhookId)
  const { onDelivery, delivered } = createDeliveryListeners()
  const outbox = new Outbox({ profile, timeScale, maxWaiting, maxRecords, clock, changes, triggered, delivered })
  changes.subscribe(({ kind, id }) => {
    if (kind === 'webhooks' && webhooks.get(id) === undefined) outbox.stop(id)
  })

  function emit(payload: Payload): readonly string[] {
    const subscribed = webhooks.subscribedTo(flagName(payload.type as EventType))
    const targets = subscribed.map(({ id, url }) => ({ id, url, behaviour: behaviourOf(id) }))
    return outbox.sendToAll(targets, payload).map(({ id }) => id)
  }
  const studio = new Studio({ clock, newId, timeScale, userId, maxRecords, changes, emit })

  async function check(webhook: Webhook): Promise<DeliveryRecord> {
    const { deliveries } = await outbox.check(webhook, testPayload(userId, clock()), behaviourOf(webhook.id))
    return deliveries[0] as DeliveryRecord
  }

  return {
    profile,
    timeScale,
    credentials,
    givenSecrets,
    workspace,
    outbox,
    studio,
    changes,
    behaviourOf,
    behave,
    check,
    onDelivery,
    ...createRepeats(workspace, outbox, behaviourOf),
    addMedia: (input) => studio.add(input),
    settled: async (options = {}) => {
      checkOptions('settled', options, { timeoutMs: wholeNumber() })
      await settled({ outbox, studio, closing, timeoutMs: options.timeoutMs ?? 30_000 })
    },
  }
}

function createBehaviours({ webhooks }: Workspace, changes: Changes): Pick<EmulatedService, 'behave' | 'behaviourOf'> {
  const behaviours = new Map<string, Behaviour>()
  changes.subscribe(({ kind, id }) => {
    if (kind === 'webhooks' && webhooks.get(id) === undefined) behaviours.delete(id)
  })
  return {
    behave(webhookId, behaviour) {
      if (webhooks.get(webhookId) === undefined) throw invalid('there is no webhook with this id')
      behaviours.set(webhookId, readBehaviour(behaviour))
      changes.notify({ kind: 'webhooks', id: webhookId })
    },
    behaviourOf: (webhookId) => behaviours.get(webhookId) ?? {},
  }
}

function createRepeats(
  { webhooks }: Workspace,
  outbox: Outbox,
  behaviourOf: EmulatedService['behaviourOf'],
): Pick<EmulatedService, 'repeat' | 'sendEdited'> {
  function toRepeat(sendingId: string): { readonly sending: Sending; readonly webhook: Webhook } {
    const sending = outbox.get(sendingId)
    if (sending === undefined) throw invalid('there is no sending with this id')
    const webhook = webhooks.get(sending.webhookId)
    if (webhook === undefined) throw invalid('the webhook of this sending was deleted')
    return { sending, webhook }
  }
  return {
    repeat(sendingId, behaviour) {
      const { sending, webhook } = toRepeat(sendingId)
      const effectiveBehaviour = behaviour === undefined ? behaviourOf(webhook.id) : readBehaviour(behaviour)
      return outbox.send(webhook, sending.payload, effectiveBehaviour, sending.body)
    },
    sendEdited(sendingId, text) {
      const { sending, webhook } = toRepeat(sendingId)
      const { payload, body } = readEdited(text, sending.payload)
      return outbox.send(webhook, payload, behaviourOf(webhook.id), body)
    },
  }
}

function createDeliveryListeners(): Pick<Emulator, 'onDelivery'> & Pick<OutboxOptions, 'delivered'> {
  /** By addition: a listener can be added twice. */
  const listeners = new Map<symbol, Parameters<Emulator['onDelivery']>[0]>()
  return {
    onDelivery(listener) {
      const addition = Symbol('addition')
      listeners.set(addition, listener)
      return () => listeners.delete(addition)
    },
    delivered(delivery, sending) {
      // A listener's error must not end the sending.
      for (const listener of listeners.values()) queueMicrotask(() => listener(delivery, sending))
    },
  }
}

const random = (): string => randomText(24)

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', message)
