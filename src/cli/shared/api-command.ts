import { sleep } from '../../internal/timers.ts'
import { createCall } from '../../service/client/call.ts'
import { clientOver } from '../../service/client/client.ts'
import type { CallOptions, Client } from '../../service/client/index.ts'
import { readConfig } from '../../service/client/options.ts'
import { type Command, type CommandInput, defineCommand } from './command.ts'
import { choice, type Flags, required, text, UsageError, url, wholeNumber } from './flags.ts'
import type { Screen } from './screen.ts'
import { plain } from './text.ts'

export const apiFlags = {
  baseUrl: required(
    url('the address of the service, without /api', 'http://127.0.0.1:4010', 'MEDIA_WEBHOOKS_BASE_URL'),
  ),
  publicKey: text('<key>', 'the public part of an API key', 'MEDIA_WEBHOOKS_PUBLIC_KEY'),
  secretKey: text('<key>', 'the secret part of the API key', 'MEDIA_WEBHOOKS_SECRET_KEY'),
  accessToken: text('<token>', 'a bearer token, instead of a key', 'MEDIA_WEBHOOKS_ACCESS_TOKEN'),
}

export const listFlags = {
  search: text('<text>', 'list only those with this text in their name'),
  orderBy: choice(['asc', 'desc'], 'ascending or descending order (default: asc)'),
  limit: wholeNumber('<n>', 'list at most this many', 1),
  offset: wholeNumber('<n>', 'skip this many'),
}

interface ApiCommand<Of extends Flags, Answer> extends Omit<Command<Of>, 'run' | 'json'> {
  /** `--json` prints what it resolves with. */
  ask(client: Client, input: CommandInput<Of>, options: CallOptions): Promise<Answer>
  show(answer: Answer): string
}

export const apiCommand = <Of extends Flags, Answer>({ flags, ask, show, ...rest }: ApiCommand<Of, Answer>): Command =>
  defineCommand<Of & typeof apiFlags>({
    ...rest,
    flags: { ...flags, ...apiFlags },
    json: 'print the answer as one JSON object, with the field names of the client',
    exitCodes: { 1: 'the service rejected the call or could not be reached' },
    async run(input, screen) {
      // TypeScript can't split the values of generic flags.
      const forClient = input as unknown as CommandInput<typeof apiFlags>
      const client = clientFrom(forClient, screen)
      const answer = await ask(client, input as unknown as CommandInput<Of>, { signal: screen.signal })
      if (input.values.json) screen.json(answer)
      else screen.print(show(answer))
      return 0
    },
  })

/** @throws UsageError or WebhookError `invalid_option` for missing credentials or an invalid address */
export function clientFrom(input: CommandInput<typeof apiFlags>, { note }: Screen): Client {
  const config = readConfig(readCredentials(input), { baseUrl: input.values.baseUrl })
  const call = createCall(config, (ms, signal, { message }) => {
    note(plain(`${message}; trying again in ${(ms / 1_000).toFixed(1)} s`))
    return sleep(ms, signal)
  })
  return clientOver(call)
}

/** Flags win over the environment. In the environment, a key wins over a token. */
function readCredentials({ values, given }: CommandInput<typeof apiFlags>) {
  const { publicKey, secretKey, accessToken } = values
  const key = given.has('publicKey') || given.has('secretKey')
  if (key && given.has('accessToken')) throw new UsageError('give a key or --access-token, not both')
  const hasKey = publicKey !== undefined && secretKey !== undefined
  if (accessToken !== undefined && !key && (given.has('accessToken') || !hasKey)) return { accessToken }
  if (hasKey) return { publicKey, secretKey }
  throw new UsageError(
    'credentials are missing: give --public-key and --secret-key, or --access-token ' +
      '(or set MEDIA_WEBHOOKS_PUBLIC_KEY and MEDIA_WEBHOOKS_SECRET_KEY, or MEDIA_WEBHOOKS_ACCESS_TOKEN)',
  )
}
