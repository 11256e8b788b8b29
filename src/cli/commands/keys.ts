import type { ApiKey } from '../../service/client/index.ts'
import { apiCommand, listFlags } from '../shared/api-command.ts'
import type { CommandGroup } from '../shared/command.ts'
import { choice, required, text, wholeNumber } from '../shared/flags.ts'
import { plain, table } from '../shared/text.ts'

const name = required(text('<text>', 'the name of the key'))

const list = apiCommand({
  name: 'list',
  summary: 'lists API keys, one page at a time',
  flags: { sortBy: choice(['created_at', 'name'], 'the field to sort by (default: created_at)'), ...listFlags },
  examples: ['keys list --search upload --sort-by name'],
  ask: async (client, { values: { search, sortBy, orderBy, limit, offset } }, options) =>
    (await client.apiKey.list({ search, sortBy, orderBy, limit, offset }, options)).data,
  show: ({ apiKeys, total }) => {
    const rows = apiKeys.map((key) => [key.id, key.name ?? '', key.type ?? '', `until ${key.expiredAt ?? '?'}`])
    return [table(rows.map((row) => row.map(plain))), `${apiKeys.length} of ${total ?? '?'}`].join('\n').trimStart()
  },
})

const create = apiCommand({
  name: 'create',
  summary: 'creates an API key, and prints its secret, which is never shown again',
  flags: {
    name,
    ttl: required(wholeNumber('<seconds>', 'its lifetime', 1, 2_147_483_647)),
    type: choice(['full_access', 'only_upload'], 'its permissions (default: full_access)'),
  },
  examples: ['keys create --name uploader --ttl 86400 --type only_upload'],
  ask: async (client, { values: { name, ttl, type = 'full_access' } }, options) =>
    (await client.apiKey.create({ apiKeyName: name, ttl, type }, options)).data,
  show: ({ apiKey }) => details(apiKey),
})

const rename = apiCommand({
  name: 'rename',
  suggestedFor: 'update',
  summary: 'renames an API key',
  positionals: ['<id>'],
  flags: { name },
  examples: ['keys rename 7c9e6679-7425-40de-944b-e07fc1f90ae7 --name uploader-2'],
  ask: (client, { positionals: [id = ''], values: { name } }, options) =>
    client.apiKey.update(id, { apiKeyName: name }, options),
  show: ({ message }) => plain(message ?? 'Renamed.'),
})

const remove = apiCommand({
  name: 'delete',
  summary: 'deletes an API key permanently',
  positionals: ['<id>'],
  flags: {},
  examples: ['keys delete 7c9e6679-7425-40de-944b-e07fc1f90ae7'],
  ask: (client, { positionals: [id = ''] }, options) => client.apiKey.delete(id, options),
  show: ({ message }) => plain(message ?? 'Deleted.'),
})

export const keys: CommandGroup = {
  name: 'keys',
  summary: "manages the service's API keys",
  commands: [list, create, rename, remove],
}

const details = ({ id, name, type, publicKey, secret, expiredAt }: ApiKey): string =>
  table(
    Object.entries({ id, name, type, 'public key': publicKey, 'secret key': secret, until: expiredAt }).flatMap(
      ([label, value]) => (value === undefined ? [] : [[label, plain(value)]]),
    ),
  )
