import type { Webhook } from '../../client/index.ts'
import { eventTypes } from '../../index.ts'
import { apiCommand, listFlags } from '../shared/api-command.ts'
import type { CommandGroup } from '../shared/command.ts'
import { choice, type Flag, list as listOf, required, text, toggle, UsageError, url } from '../shared/flags.ts'
import { maskedUrl, maskingHelp } from '../shared/mask.ts'
import { plain, table } from '../shared/text.ts'

type Events = readonly (typeof eventTypes)[number][]

const events = (help: string): Flag<Events> => {
  const words = listOf('<types|all>', `${help}: ${eventTypes.join(', ')}, or all`, ['all', ...eventTypes])
  const read = (given: string): Events => {
    const chosen = words.read(given)
    return chosen.includes('all') ? eventTypes : eventTypes.filter((type) => chosen.includes(type))
  }
  return { ...words, read }
}
const name = text('<text>', 'the name of the webhook')
const target = url('where its deliveries go; it may hold a secret')
const reveal = toggle('print the URLs whole, with the secrets in them')

/** The subscription to these events and no others. */
const subscription = (chosen: Events) => ({
  fileReceived: chosen.includes('file.received'),
  encodingStarted: chosen.includes('encoding.started'),
  partialFinished: chosen.includes('partial.finished'),
  encodingFinished: chosen.includes('encoding.finished'),
  encodingFailed: chosen.includes('encoding.failed'),
})

/** Only the flags that are set: the others are not asked for. */
const filter = (chosen: Events = []) =>
  Object.fromEntries(Object.entries(subscription(chosen)).filter(([, isChosen]) => isChosen))

const guarded = (webhook: Webhook, reveal: true | undefined): Webhook =>
  reveal || webhook.url === undefined ? webhook : { ...webhook, url: maskedUrl(webhook.url) }

const list = apiCommand({
  name: 'list',
  summary: 'lists the webhooks, a page of them',
  details: maskingHelp,
  flags: {
    events: events('only those subscribed to all of these'),
    sortBy: choice(['created_at', 'url', 'name'], 'what they are sorted by (default: created_at)'),
    ...listFlags,
    reveal,
  },
  examples: ['webhooks list --events encoding.finished --limit 10'],
  async ask(client, { values: { events, search, sortBy, orderBy, limit, offset, reveal } }, options) {
    const asked = { ...filter(events), search, sortBy, orderBy, limit, offset }
    const { webhooks, total } = (await client.webhook.list(asked, options)).data
    return { webhooks: webhooks.map((webhook) => guarded(webhook, reveal)), total }
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
    webhook: guarded((await client.webhook.get(id, options)).data.webhook, reveal),
  }),
  show: ({ webhook }) => shown(webhook),
})

const create = apiCommand({
  name: 'create',
  summary: 'creates a webhook',
  details: maskingHelp,
  flags: { url: required(target), events: required(events('what it is sent')), name },
  examples: ["webhooks create --url 'https://example.com/webhooks/media?token=secret' --events all --name production"],
  async ask(client, { values: { url, name, events } }, options) {
    const { data } = await client.webhook.create({ url, name, ...subscription(events) }, options)
    return { webhook: guarded(data.webhook, undefined) }
  },
  show: ({ webhook }) => shown(webhook),
})

const update = apiCommand({
  name: 'update',
  summary: 'changes what is given of a webhook',
  positionals: ['<id>'],
  flags: { url: target, events: events('what it is sent from now on, and nothing else'), name },
  examples: ['webhooks update 0f8fad5b-d9cb-469f-a165-70867728950e --events encoding.finished,encoding.failed'],
  async ask(client, { positionals: [id = ''], values: { url, name, events } }, options) {
    if ((url ?? name ?? events) === undefined) throw new UsageError('give what to change: --url, --events or --name')
    return client.webhook.update(id, { url, name, ...(events && subscription(events)) }, options)
  },
  show: ({ message }) => plain(message ?? 'Updated.'),
})

const remove = apiCommand({
  name: 'delete',
  summary: 'deletes a webhook, for good',
  positionals: ['<id>'],
  flags: {},
  examples: ['webhooks delete 0f8fad5b-d9cb-469f-a165-70867728950e'],
  ask: (client, { positionals: [id = ''] }, options) => client.webhook.delete(id, options),
  show: ({ message }) => plain(message ?? 'Deleted.'),
})

const check = apiCommand({
  name: 'check',
  summary: 'has the service send a test delivery to a webhook',
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

function subscribed(webhook: Webhook): string {
  const flags = subscription(eventTypes)
  const set = Object.keys(flags).filter((flag) => webhook[flag as keyof typeof flags])
  return set.map((flag) => flag.replace(/[A-Z]/, (letter) => `.${letter.toLowerCase()}`)).join(',')
}

const shown = (webhook: Webhook): string =>
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
