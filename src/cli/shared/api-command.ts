import { type CallOptions, type Client, createClient } from '../../client/index.ts'
import { type Command, defineCommand, type Input } from './command.ts'
import { choice, type Flags, required, text, UsageError, url, whole } from './flags.ts'

const apiFlags = {
  baseUrl: required(
    url("the service's base address, without /api", 'http://127.0.0.1:4010', 'MEDIA_WEBHOOKS_BASE_URL'),
  ),
  publicKey: text('<key>', 'the public part of an API key', 'MEDIA_WEBHOOKS_PUBLIC_KEY'),
  secretKey: text('<key>', 'its secret part', 'MEDIA_WEBHOOKS_SECRET_KEY'),
  accessToken: text('<token>', 'a bearer token, in the place of a key', 'MEDIA_WEBHOOKS_ACCESS_TOKEN'),
}

/** The flags of a list. */
export const listFlags = {
  search: text('<text>', 'only those with this in their name'),
  orderBy: choice(['asc', 'desc'], 'from the smallest, or from the largest (default: asc)'),
  limit: whole('<n>', 'at most so many', 1, 100),
  offset: whole('<n>', 'without the first so many'),
}

/** A command that makes one call of the service's API. */
interface ApiCommand<Of extends Flags, Answer> extends Omit<Command<Of>, 'run' | 'json'> {
  /** Calls it. What it resolves with is what `--json` prints. */
  ask(client: Client, input: Input<Of>, options: CallOptions): Promise<Answer>
  /** The answer for people. */
  show(answer: Answer): string
}

export const apiCommand = <Of extends Flags, Answer>({ flags, ask, show, ...rest }: ApiCommand<Of, Answer>): Command =>
  defineCommand<Of & typeof apiFlags>({
    ...rest,
    flags: { ...flags, ...apiFlags },
    json: "print the answer as one JSON object, in the client's words",
    exitCodes: { 1: 'the service rejected it, or could not be reached' },
    async run(input, screen) {
      // The compiler can't split the values of flags that it does not know yet.
      const forClient = input as unknown as Input<typeof apiFlags>
      const client = createClient(credentialsOf(forClient), { baseUrl: forClient.values.baseUrl })
      const answer = await ask(client, input as unknown as Input<Of>, { signal: screen.signal })
      if (input.values.json) screen.json(answer)
      else screen.print(show(answer))
      return 0
    },
  })

/** A flag decides over the environment, and there a key over a token. */
function credentialsOf({ values, given }: Input<typeof apiFlags>) {
  const { publicKey, secretKey, accessToken } = values
  const key = given.has('publicKey') || given.has('secretKey')
  if (key && given.has('accessToken')) throw new UsageError('give a key or --access-token, not both')
  const hasKey = publicKey !== undefined && secretKey !== undefined
  if (accessToken !== undefined && !key && (given.has('accessToken') || !hasKey)) return { accessToken }
  if (hasKey) return { publicKey, secretKey }
  throw new UsageError(
    'credentials are missing: --public-key and --secret-key, or --access-token ' +
      '(or MEDIA_WEBHOOKS_PUBLIC_KEY and MEDIA_WEBHOOKS_SECRET_KEY, or MEDIA_WEBHOOKS_ACCESS_TOKEN)',
  )
}
