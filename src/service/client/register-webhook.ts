import { WebhookError } from '../../errors.ts'
import type { Receiver } from '../../receiver/options.ts'
import { ApiError } from './api-error.ts'
import type { CallOptions } from './call.ts'
import type { Client } from './client.ts'
import * as fields from './params.ts'
import { type Subscription, subscriptions } from './subscriptions.ts'
import type { UpdateWebhookParams, Webhook } from './webhook.ts'

/** The webhook for {@link registerWebhook} to create or update. */
export interface Registration {
  /** The receiver's public URL, with its token if it has one. */
  readonly url: string
  /**
   * A name that is not blank. With a name, the webhook is found again after its URL changes. Two deployments in one
   * workspace must not share one. A webhook found by its URL keeps its name if the wanted one is taken. The service's
   * choice by default.
   */
  readonly name?: string | undefined
}

/** The result of {@link registerWebhook}. */
export interface RegistrationReport {
  readonly action: 'created' | 'updated' | 'unchanged'
  /** The webhook as it is now. Same shape as the answer of `webhook.create`. */
  readonly data: { readonly webhook: Webhook }
  /** Others with the same URL or name, left alone. Those with the same URL also get every event: delete yours. */
  readonly duplicates: readonly Webhook[]
}

/**
 * Subscribes a webhook to the events the receiver handles; `onAny` means all types. Finds the webhook by its URL, or
 * else by its name; other matches are reported in `duplicates`. Creates it if there is none, and updates only what
 * differs. Call it at every start, after you have registered the handlers.
 *
 * Safe to call from several servers at once. If two create a webhook, each deletes its own unless it is the oldest, and
 * the receiver drops the duplicate events meanwhile. A server that crashes in between may leave a second webhook
 * behind, which later calls report in `duplicates`.
 * ```ts
 * await registerWebhook(client, receiver, { url: 'https://example.com/webhooks/media?token=…', name: 'production' })
 * ```
 * @throws WebhookError `invalid_option` for an invalid parameter, or a receiver without handlers
 * @throws ApiError if an API call fails
 */
export async function registerWebhook(
  client: Pick<Client, 'webhook'>,
  receiver: Pick<Receiver, 'handles'>,
  registration: Registration,
  options?: CallOptions,
): Promise<RegistrationReport> {
  const api = requireApi(client)
  const wanted: Wanted = {
    ...fields.readOptions('registerWebhook', schema, registration),
    ...readSubscriptions(receiver),
  }
  const { webhook, ...report } = await register(api, wanted, options).catch((error) => {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error
    // Deleted meanwhile, by a person or by a server that had created a second one.
    return register(api, wanted, options)
  })
  return { ...report, data: { webhook } }
}

type Registered = Omit<RegistrationReport, 'data'> & RegistrationReport['data']

const schema = fields.params({ url: fields.httpUrl, name: fields.name.optional() })

type Wanted = Registration & Readonly<Record<Subscription, boolean>>

async function register(api: Client['webhook'], wanted: Wanted, options: CallOptions | undefined): Promise<Registered> {
  const [found, ...others] = matching(await oldestFirst(api, options), wanted)
  if (found !== undefined) return adjust(api, wanted, { webhook: found, duplicates: others }, options)

  const { data } = await api.create(wanted, options)
  const listed = await oldestFirst(api, options)
  // The two answers may write the creation time differently: trust the list. It may lag behind.
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

/** @throws WebhookError `invalid_option` for untyped callers that pass something else */
function requireApi(client: Pick<Client, 'webhook'>): Client['webhook'] {
  if (typeof client?.webhook?.listAll === 'function') return client.webhook
  throw new WebhookError('invalid_option', 'registerWebhook: the first argument must be a client from createClient()')
}

/** @throws WebhookError `invalid_option` if nothing is handled: a webhook without events would receive nothing */
function readSubscriptions(receiver: Pick<Receiver, 'handles'>): Record<Subscription, boolean> {
  if (typeof receiver?.handles !== 'function') {
    throw new WebhookError(
      'invalid_option',
      'registerWebhook: the second argument must be a receiver from createReceiver()',
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

/** Compares timestamps as text. Inexact if their lengths differ, but all servers agree on the order. */
function byAge(one: Webhook, other: Webhook): number {
  const [a, b] = [one, other].map(({ createdAt = '', id }) => `${createdAt} ${id}`) as [string, string]
  return a < b ? -1 : a > b ? 1 : 0
}

/** Finds the webhooks with the URL or the name: both first, then URL, then name. Stable within each group. */
function matching(all: readonly Webhook[], wanted: Wanted): readonly Webhook[] {
  const rank = (webhook: Webhook) => (hasUrl(webhook, wanted) ? 2 : 0) + (hasName(webhook, wanted) ? 1 : 0)
  return all.filter((webhook) => rank(webhook) > 0).sort((one, other) => rank(other) - rank(one))
}

const hasUrl = (webhook: Webhook, { url }: Wanted): boolean => isSameUrl(webhook.url, url)

const hasName = (webhook: Webhook, { name }: Wanted): boolean => name !== undefined && webhook.name === name

/** Compares normalised URLs, because the service may store that form. */
export const isSameUrl = (one = '', other = ''): boolean => fields.parseUrl(one)?.href === fields.parseUrl(other)?.href

async function adjust(
  api: Client['webhook'],
  wanted: Wanted,
  { webhook, duplicates }: Omit<Registered, 'action'>,
  options?: CallOptions,
): Promise<Registered> {
  // Renaming it would make it look like the other.
  const nameIsTaken = duplicates.some((each) => hasName(each, wanted))
  const changes = findChanges(webhook, nameIsTaken ? { ...wanted, name: undefined } : wanted)
  if (Object.keys(changes).length === 0) return { action: 'unchanged', webhook, duplicates }
  await api.update(webhook.id, changes, options)
  const { data } = await api.get(webhook.id, options)
  return { action: 'updated', webhook: data.webhook, duplicates }
}

function findChanges(found: Webhook, { url, name, ...flags }: Wanted): UpdateWebhookParams {
  const changed = Object.entries(flags).filter(([flag, value]) => (found[flag as Subscription] ?? false) !== value)
  return {
    ...(!isSameUrl(found.url, url) && { url }),
    ...(name !== undefined && name !== found.name && { name }),
    ...Object.fromEntries(changed),
  }
}
