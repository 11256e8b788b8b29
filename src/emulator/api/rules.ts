import * as z from 'zod'
import type { Profile } from '../sending/profile.ts'
import { text } from '../shared/input.ts'
import { nameLimit } from '../shared/undocumented.ts'
import type { ApiKey } from '../workspace/api-keys.ts'

/** The rules of one profile for what the API accepts and returns, if the profiles differ. */
export interface Rules {
  readonly id: z.ZodType<string>
  /** A name, possibly blank. */
  readonly name: z.ZodType<string>
  /** Maximum size of a page of API keys. */
  readonly apiKeysLimit: number
  /** `true` if a new webhook has to be subscribed to an event. */
  readonly needsEvent: boolean
  /** Converts an API key to what an answer contains. The secret of a new key stays in it. */
  readonly answerApiKey: (key: ApiKey) => object
}

/** The rules of each profile. `documented` accepts everything that the documentation does not mention. */
export const rulesOf: Readonly<Record<Profile, Rules>> = {
  documented: {
    id: text,
    name: text,
    apiKeysLimit: Number.MAX_SAFE_INTEGER,
    needsEvent: false,
    answerApiKey: ({ status, last_requested_at, ...key }) => key,
  },
  observed: {
    id: z.guid({ error: 'has to be a UUID' }).toLowerCase(),
    name: text
      .trim()
      .refine((given) => [...given].length <= nameLimit, { error: `has to have at most ${nameLimit} characters` }),
    apiKeysLimit: 100,
    needsEvent: true,
    answerApiKey: (key) => ({ ...key, ttl: `${key.ttl}` }),
  },
}
