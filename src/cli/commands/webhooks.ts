import { type EventType, eventTypes } from '../../index.ts'
import type { Webhook } from '../../service/client/index.ts'
import { subscription } from '../../service/client/subscriptions.ts'
import { apiCommand, listFlags } from '../shared/api-command.ts'
import type { CommandGroup } from '../shared/command.ts'
import { events, subscribing } from '../shared/events.ts'
import { choice, required, text, toggle, UsageError, wholeNumber } from '../shared/flags.ts'
import { maskedUrl, maskingHelp } from '../shared/mask.ts'
import { receiverUrl, secretUrl, secretUrlHelp } from '../shared/secret-url.ts'
import { plain, table } from '../shared/text.ts'

const name = text('<text>', 'the name of the webhook')
const targetHelp = 'the URL that receives the deliveries'
const reveal = toggle('print URLs in full, with the secrets in them')

/** Only the chosen types are in the filter, so other subscriptions don't matter. */
const filter = (chosen: readonly EventType[] = []) =>
  Object.fromEntries(chosen.map((type) => [subscription(type), true]))

const masked = (webhook: Webhook, reveal: true | undefined): Webhook =>
  reveal || webhook.url === undefined ? webhook : { ...webhook, url: maskedUrl(webhook.url) }

const list = apiCommand({
  name: 'list',
  summary: 'lists webhooks, one page at a time',
  details: maskingHelp,
  flags: {
    events: events('list only webhooks with all of these event types'),
    sortBy: choice(['created_at', 'url', 'name'], 'the field to sort by (default: created_at)'),
    ...listFlags,
    limit: wholeNumber('<n>', 'list at most this many', 1, 100),
    reveal,
  },
  examples: ['webhooks list --events encoding.finished --limit 10'],
  async ask(client, { values: { events, search, sortBy, orderBy, limit, offset, reveal } }, options) {
    const params = { ...filter(events), search, sortBy, orderBy, limit, offset }
    const { webhooks, total } = (await client.webhook.list(params, options)).data
    return { webhooks: webhooks.map((webhook) => masked(webhook, reveal)), total }
  },
  show: ({ webhooks, total }) => {
    const rows = webhooks.map((webhook) => [webhook.id, webhook.name ?? '', webhook.url ?? '', subscribed(webhook)])
    return [table(rows.map((row) => row.map(plain))), `${webhooks.length} of ${total ?? '?'}`].join('\n').trimStart()
  },
})

const get = apiCommand({
  name: 'get',
  summary: 'prints a webhook',
  details: maskingHelp,
  positionals: ['<id>'],
  flags: { reveal },
  examples: ['webhooks get 0f8fad5b-d9cb-469f-a165-70867728950e'],
  ask: async (client, { positionals: [id = ''], values: { reveal } }, options) => ({
    webhook: masked((await client.webhook.get(id, options)).data.webhook, reveal),
  }),
  show: ({ webhook }) => details(webhook),
})

const create = apiCommand({
  name: 'create',
  summary: 'creates a webhook',
  details: `${secretUrlHelp}\n${maskingHelp}`,
  flags: {
    url: required(receiverUrl(targetHelp)),
    events: required(events('the event types to send')),
    name,
  },
  examples: ["webhooks create --url 'https://example.com/webhooks/media?token=secret' --events all --name production"],
  async ask(client, { values: { url, name, events } }, options) {
    const { data } = await client.webhook.create({ url, name, ...subscribing(events) }, options)
    return { webhook: masked(data.webhook, undefined) }
  },
  show: ({ webhook }) => details(webhook),
})

const update = apiCommand({
  name: 'update',
  summary: 'changes the URL, the name or the event types of a webhook',
  positionals: ['<id>'],
  // Not from the environment: a URL there must not overwrite the webhook's when you only rename it.
  flags: { url: secretUrl(targetHelp), events: events('the event types to send from now on'), name },
  examples: ['webhooks update 0f8fad5b-d9cb-469f-a165-70867728950e --events encoding.finished,encoding.failed'],
  async ask(client, { positionals: [id = ''], values: { url, name, events } }, options) {
    if ((url ?? name ?? events) === undefined) throw new UsageError('nothing to change: pass --url, --events or --name')
    return client.webhook.update(id, { url, name, ...(events && subscribing(events)) }, options)
  },
  show: ({ message }) => plain(message ?? 'Updated.'),
})

const remove = apiCommand({
  name: 'delete',
  summary: 'deletes a webhook permanently',
  positionals: ['<id>'],
  flags: {},
  examples: ['webhooks delete 0f8fad5b-d9cb-469f-a165-70867728950e'],
  ask: (client, { positionals: [id = ''] }, options) => client.webhook.delete(id, options),
  show: ({ message }) => plain(message ?? 'Deleted.'),
})

const check = apiCommand({
  name: 'check',
  summary: 'makes the service send a test delivery to a webhook',
  positionals: ['<id>'],
  flags: {},
  examples: ['webhooks check 0f8fad5b-d9cb-469f-a165-70867728950e'],
  ask: (client, { positionals: [id = ''] }, options) => client.webhook.check(id, options),
  show: ({ message }) => plain(message ?? 'Delivered.'),
})

export const webhooks: CommandGroup = {
  name: 'webhooks',
  summary: "manages the service's webhooks",
  commands: [list, get, create, update, remove, check],
}

const subscribed = (webhook: Webhook): string => eventTypes.filter((type) => webhook[subscription(type)]).join(',')

const details = (webhook: Webhook): string =>
  table(
    Object.entries({
      id: webhook.id,
      name: webhook.name,
      url: webhook.url,
      events: subscribed(webhook),
      created: webhook.createdAt,
      updated: webhook.updatedAt,
      triggered: webhook.lastTriggeredAt,
    }).flatMap(([label, value]) => (value === undefined ? [] : [[label, plain(value)]])),
  )
