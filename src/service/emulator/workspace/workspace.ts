import type { Changes } from '../shared/changes.ts'
import type { Clock } from '../shared/clock.ts'
import { ApiKeys, type Authentication } from './api-keys.ts'
import { SecretHash } from './secret.ts'
import { Webhooks } from './webhooks.ts'

/** The emulated account's credentials. */
export interface Credentials {
  /** The public half of the API key. */
  readonly publicKey: string
  /** The secret half of the API key. */
  readonly secretKey: string
  /** A bearer token, instead of the key. */
  readonly accessToken: string
}

export interface WorkspaceOptions {
  readonly clock: Clock
  readonly newId: () => string
  readonly changes: Changes
  /** The account's own credentials. Always valid, never listed, can't be deleted. */
  readonly credentials: Credentials
}

export class Workspace {
  readonly userId: string
  readonly clock: Clock
  readonly apiKeys: ApiKeys
  readonly webhooks: Webhooks
  readonly #publicKey: string
  readonly #secretKey: SecretHash
  readonly #accessToken: SecretHash

  constructor({ clock, newId, changes, credentials }: WorkspaceOptions) {
    this.userId = newId()
    this.clock = clock
    this.apiKeys = new ApiKeys({ clock, newId, changes })
    this.webhooks = new Webhooks({ userId: this.userId, clock, newId, changes })
    this.#publicKey = credentials.publicKey
    this.#secretKey = new SecretHash(credentials.secretKey)
    this.#accessToken = new SecretHash(credentials.accessToken)
  }

  authenticateKeyPair(publicKey: string, secretKey: string): Authentication {
    const own = publicKey === this.#publicKey && this.#secretKey.matches(secretKey)
    return own ? this.#account() : this.apiKeys.authenticate(publicKey, secretKey)
  }

  authenticateToken(accessToken: string): Authentication {
    return this.#accessToken.matches(accessToken) ? this.#account() : { rejected: 'wrong access token' }
  }

  #account(): Authentication {
    return { id: this.userId, type: 'full_access' }
  }
}
