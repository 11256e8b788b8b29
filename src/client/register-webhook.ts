import { WebhookError } from '../errors.ts'
import { eventTypes } from '../events/catalogue.ts'
import type { Receiver } from '../receiver/options.ts'
import { ApiError } from './api-error.ts'
import type { CallOptions } from './call.ts'
import type { Client } from './client.ts'
import { toCamelCase } from './naming.ts'
import * as fields from './params.ts'
import type { Subscriptions, UpdateWebhookParams, Webhook } from './webhook.ts'

/** Where the service is to send its events. */
export interface Registration {
  /** The public URL of the receiver, with the token if there is one. */
  readonly url: string
  /**
   * What the webhook is called. With it the webhook is found again when its URL has changed, so that no two deployments
   * of one workspace may use the same one.
   */
  readonly name?: string | undefined
}

/** What {@link registerWebhook} did. */
export interface RegistrationReport {
  readonly action: 'created' | 'updated' | 'unchanged'
  readonly webhook: Webhook
  /** Others with the same URL, which get every event too. Delete them if they are yours. */
  readonly duplicates: readonly Webhook[]
}

/**
 * Makes the service send what the receiver has handlers for: all five events with `onAny`. The webhook is found by its
 * URL, otherwise by its name; it is created, updated where it differs, or left alone. Call it at every start, after the
 * handlers have been registered.
 *
 * Several servers may do so at once. Should two of them create a webhook, both exist for a moment, and the receiver drops
 * the duplicates; then the newer one is deleted by the server that had made it. It deletes no other. A server that dies in
 * between, or two whose webhooks the service lists late, can leave one over: it is reported in `duplicates` from then on.
 *
 * ```ts
 * await registerWebhook(client, receiver, { url: 'https://example.com/webhooks/media?token=…', name: 'production' })
 * ```
 * @throws WebhookError `invalid_option`, when the receiver has no handlers, too
 * @throws ApiError
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
  try {
    return await register(api, wanted, options)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error
    // Somebody has deleted the webhook in between: the server that had made it too much, or a human.
    return register(api, wanted, options)
  }
}

const schema = fields.params({ url: fields.httpUrl, name: fields.name.optional() })

type Wanted = Registration & Readonly<Record<keyof Subscriptions, boolean>>

async function register(
  api: Client['webhook'],
  wanted: Wanted,
  options: CallOptions | undefined,
): Promise<RegistrationReport> {
  const [found, ...leftOver] = matching(await oldestFirst(api, options), wanted)
  if (found !== undefined) return adjust(api, wanted, { webhook: found, duplicates: leftOver }, options)

  const { data } = await api.create(wanted, options)
  const listed = await oldestFirst(api, options)
  // As it is listed, since the two answers may write its creation differently; a list may also lag behind.
  const created = listed.find(({ id }) => id === data.webhook.id) ?? data.webhook
  const others = withUrl(listed, wanted).filter(({ id }) => id !== created.id)
  const [oldest, ...duplicates] = others
  if (oldest === undefined || byAge(created, oldest) < 0) {
    return { action: 'created', webhook: created, duplicates: others }
  }
  await api.delete(created.id, options)
  return adjust(api, wanted, { webhook: oldest, duplicates }, options)
}

/** @throws WebhookError `invalid_option` for what callers without types may give */
function apiOf(client: Pick<Client, 'webhook'>): Client['webhook'] {
  if (typeof client?.webhook?.listAll === 'function') return client.webhook
  throw new WebhookError('invalid_option', 'registerWebhook: the first argument has to be a client, of createClient()')
}

/** @throws WebhookError `invalid_option`: the service rejects a webhook without events */
function subscriptionsOf(receiver: Pick<Receiver, 'handles'>): Record<keyof Subscriptions, boolean> {
  if (typeof receiver?.handles !== 'function') {
    throw new WebhookError(
      'invalid_option',
      'registerWebhook: the second argument has to be a receiver, of createReceiver()',
    )
  }
  const flags = eventTypes.map((type) => [toCamelCase(type.replace('.', '_')), receiver.handles(type)] as const)
  if (flags.some(([, handled]) => handled)) return Object.fromEntries(flags) as Record<keyof Subscriptions, boolean>
  throw new WebhookError('invalid_option', 'registerWebhook: the receiver has no handlers; register them before it')
}

async function oldestFirst(api: Client['webhook'], options?: CallOptions): Promise<readonly Webhook[]> {
  const all: Webhook[] = []
  for await (const webhook of api.listAll({}, options)) all.push(webhook)
  return all.sort(byAge)
}

/** Not quite by age where the texts differ in length. What matters is that all servers find the same order. */
function byAge(one: Webhook, other: Webhook): number {
  const [a, b] = [one, other].map(({ createdAt = '', id }) => `${createdAt} ${id}`) as [string, string]
  return a < b ? -1 : a > b ? 1 : 0
}

/** The webhooks with the URL, otherwise the oldest one with the name. */
function matching(all: readonly Webhook[], wanted: Wanted): readonly Webhook[] {
  const found = withUrl(all, wanted)
  if (found.length > 0 || wanted.name === undefined) return found
  return all.filter(({ name }) => name === wanted.name).slice(0, 1)
}

const withUrl = (all: readonly Webhook[], { url }: Wanted) => all.filter((webhook) => isSameUrl(webhook.url, url))

/** In other words too: the service may store a URL as it is normally written. */
const isSameUrl = (one = '', other = ''): boolean => fields.parseUrl(one)?.href === fields.parseUrl(other)?.href

async function adjust(
  api: Client['webhook'],
  wanted: Wanted,
  { webhook, duplicates }: Omit<RegistrationReport, 'action'>,
  options?: CallOptions,
): Promise<RegistrationReport> {
  const changes = changesOf(webhook, wanted)
  if (Object.keys(changes).length === 0) return { action: 'unchanged', webhook, duplicates }
  await api.update(webhook.id, changes, options)
  const { data } = await api.get(webhook.id, options)
  return { action: 'updated', webhook: data.webhook, duplicates }
}

function changesOf(found: Webhook, { url, name, ...flags }: Wanted): UpdateWebhookParams {
  const changed = Object.entries(flags).filter(
    ([flag, value]) => (found[flag as keyof Subscriptions] ?? false) !== value,
  )
  return {
    ...(!isSameUrl(found.url, url) && { url }),
    ...(name !== undefined && name !== found.name && { name }),
    ...Object.fromEntries(changed),
  }
}
