import * as z from 'zod'
import type { Profile } from '../sending/profile.ts'
import { text } from '../shared/input.ts'
import { nameLimit } from '../shared/undocumented.ts'
import type { ApiKey } from '../workspace/api-keys.ts'

/** What the API accepts and returns, where the profiles differ. */
export interface ApiRules {
  readonly id: z.ZodType<string>
  readonly name: z.ZodType<string>
  readonly apiKeysLimit: number
  readonly needsEvent: boolean
  /** Turns an API key into the API's answer. Keeps the secret of a new key. */
  readonly answerApiKey: (key: ApiKey) => object
}

/** The rules by profile. `documented` accepts everything the documentation doesn't mention. */
export const rulesOf: Readonly<Record<Profile, ApiRules>> = {
  documented: {
    id: text,
    name: text,
    apiKeysLimit: Number.MAX_SAFE_INTEGER,
    needsEvent: false,
    answerApiKey: ({ status, last_requested_at, ...key }) => key,
  },
  observed: {
    id: z.guid({ error: 'must be a UUID' }).toLowerCase(),
    name: text
      .trim()
      .refine((given) => [...given].length <= nameLimit, { error: `must have at most ${nameLimit} characters` }),
    apiKeysLimit: 100,
    needsEvent: true,
    answerApiKey: (key) => ({ ...key, ttl: `${key.ttl}` }),
  },
}
