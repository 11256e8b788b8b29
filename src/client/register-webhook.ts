import { WebhookError } from '../errors.ts'
import type { Receiver } from '../receiver/options.ts'
import { ApiError } from './api-error.ts'
import type { CallOptions } from './call.ts'
import type { Client } from './client.ts'
import * as fields from './params.ts'
import { type Subscription, subscriptions } from './subscriptions.ts'
import type { UpdateWebhookParams, Webhook } from './webhook.ts'

/** The webhook that {@link registerWebhook} creates or updates. */
export interface Registration {
  /** The public URL of the receiver, with its token if it has one. */
  readonly url: string
  /**
   * The name of the webhook, which is not blank. With a name, the webhook is found again after its URL has changed. Two
   * deployments in one workspace must not share a name. A webhook that is found by its URL is not renamed if another
   * one has the name already. The service chooses a name if it is left out.
   */
  readonly name?: string | undefined
}

/** The result of {@link registerWebhook}. */
export interface RegistrationReport {
  /** The action taken on the webhook. */
  readonly action: 'created' | 'updated' | 'unchanged'
  /** The webhook as it is now, in the same field as in the answer of `webhook.create`. */
  readonly data: { readonly webhook: Webhook }
  /**
   * Other webhooks with the same URL or the same name. They are left as they are. Those with the same URL also receive
   * every event: delete what is yours.
   */
  readonly duplicates: readonly Webhook[]
}

/**
 * Subscribes a webhook to the events that the receiver has handlers for. `onAny` counts as all types. The webhook is found
 * by its URL, or else by its name; other matches are reported in `duplicates`. If there is none, it is created. Only
 * the fields that differ are updated. Call this at every start, after you have registered the handlers.
 *
 * Several servers may call it at the same time. If two of them create a webhook, the receiver drops the duplicate
 * events. Each server deletes its own webhook if it is not the oldest. It never deletes another webhook. A server that
 * crashes at that moment can leave a second webhook behind. Later calls report it in `duplicates`.
 *
 * ```ts
 * await registerWebhook(client, receiver, { url: 'https://example.com/webhooks/media?token=…', name: 'production' })
 * ```
 * @throws WebhookError `invalid_option` if a parameter is invalid or the receiver has no handlers
 * @throws ApiError if a call of the API fails
 */
export async function registerWebhook(
  client: Pick<Client, 'webhook'>,
  receiver: Pick<Receiver, 'handles'>,
  registration: Registration,
  options?: CallOptions,
): Promise<RegistrationReport> {
  const api = apiOf(client)
  const wanted: Wanted = {
    ...fields.readOptions('registerWebhook', schema, registration),
    ...subscriptionsOf(receiver),
  }
  const { webhook, ...report } = await register(api, wanted, options).catch((error) => {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error
    // A person, or a server that had created a second webhook, has deleted this one in the meantime.
    return register(api, wanted, options)
  })
  return { ...report, data: { webhook } }
}

/** The result of a registration, flat. */
type Registered = Omit<RegistrationReport, 'data'> & RegistrationReport['data']

const schema = fields.params({ url: fields.httpUrl, name: fields.name.optional() })

type Wanted = Registration & Readonly<Record<Subscription, boolean>>

async function register(api: Client['webhook'], wanted: Wanted, options: CallOptions | undefined): Promise<Registered> {
  const [found, ...others] = matching(await oldestFirst(api, options), wanted)
  if (found !== undefined) return adjust(api, wanted, { webhook: found, duplicates: others }, options)

  const { data } = await api.create(wanted, options)
  const listed = await oldestFirst(api, options)
  // The two answers can write the time of creation differently, so the one in the list counts. The list can lag behind.
  const created = listed.find(({ id }) => id === data.webhook.id) ?? data.webhook
  const matches = matching(listed, wanted).filter(({ id }) => id !== created.id)
  const oldest = listed.find((each) => each.id !== created.id && hasUrl(each, wanted))
  if (oldest === undefined || byAge(created, oldest) < 0) {
    return { action: 'created', webhook: created, duplicates: matches }
  }
  await api.delete(created.id, options)
  const duplicates = matches.filter(({ id }) => id !== oldest.id)
  return adjust(api, wanted, { webhook: oldest, duplicates }, options)
}

/** @throws WebhookError `invalid_option` if a caller without types passes something else */
function apiOf(client: Pick<Client, 'webhook'>): Client['webhook'] {
  if (typeof client?.webhook?.listAll === 'function') return client.webhook
  throw new WebhookError('invalid_option', 'registerWebhook: the first argument has to be a client from createClient()')
}

/** @throws WebhookError `invalid_option` if nothing is handled, because a webhook without events would receive nothing */
function subscriptionsOf(receiver: Pick<Receiver, 'handles'>): Record<Subscription, boolean> {
  if (typeof receiver?.handles !== 'function') {
    throw new WebhookError(
      'invalid_option',
      'registerWebhook: the second argument has to be a receiver from createReceiver()',
    )
  }
  const handled = subscriptions((type) => receiver.handles(type))
  if (Object.values(handled).includes(true)) return handled
  throw new WebhookError(
    'invalid_option',
    'registerWebhook: the receiver has no handlers: register them before you call this',
  )
}

async function oldestFirst(api: Client['webhook'], options?: CallOptions): Promise<readonly Webhook[]> {
  const all: Webhook[] = []
  for await (const webhook of api.listAll({}, options)) all.push(webhook)
  return all.sort(byAge)
}

/** Compares timestamps as text, which is not exact if they differ in length. All servers still find the same order. */
function byAge(one: Webhook, other: Webhook): number {
  const [a, b] = [one, other].map(({ createdAt = '', id }) => `${createdAt} ${id}`) as [string, string]
  return a < b ? -1 : a > b ? 1 : 0
}

/**
 * Finds the webhooks with the URL or the name. Those with both come first, then those with the URL; within each group the
 * order stays.
 */
function matching(all: readonly Webhook[], wanted: Wanted): readonly Webhook[] {
  const rank = (webhook: Webhook) => (hasUrl(webhook, wanted) ? 2 : 0) + (hasName(webhook, wanted) ? 1 : 0)
  return all.filter((webhook) => rank(webhook) > 0).sort((one, other) => rank(other) - rank(one))
}

const hasUrl = (webhook: Webhook, { url }: Wanted): boolean => isSameUrl(webhook.url, url)

const hasName = (webhook: Webhook, { name }: Wanted): boolean => name !== undefined && webhook.name === name

/** Compares URLs in their normal form, because the service may store that. */
export const isSameUrl = (one = '', other = ''): boolean => fields.parseUrl(one)?.href === fields.parseUrl(other)?.href

async function adjust(
  api: Client['webhook'],
  wanted: Wanted,
  { webhook, duplicates }: Omit<Registered, 'action'>,
  options?: CallOptions,
): Promise<Registered> {
  // A second webhook of the same name would look like the first.
  const nameIsTaken = duplicates.some((each) => hasName(each, wanted))
  const changes = changesOf(webhook, nameIsTaken ? { ...wanted, name: undefined } : wanted)
  if (Object.keys(changes).length === 0) return { action: 'unchanged', webhook, duplicates }
  await api.update(webhook.id, changes, options)
  const { data } = await api.get(webhook.id, options)
  return { action: 'updated', webhook: data.webhook, duplicates }
}

function changesOf(found: Webhook, { url, name, ...flags }: Wanted): UpdateWebhookParams {
  const changed = Object.entries(flags).filter(([flag, value]) => (found[flag as Subscription] ?? false) !== value)
  return {
    ...(!isSameUrl(found.url, url) && { url }),
    ...(name !== undefined && name !== found.name && { name }),
    ...Object.fromEntries(changed),
  }
}
