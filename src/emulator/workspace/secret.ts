import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * The SHA-256 of a secret, which is kept in its place. A slow hash is for secrets that can be guessed, such as
 * passwords. These are 256 random bits, and are checked with every request.
 */
export class SecretHash {
  readonly #digest: Buffer

  constructor(secret: string) {
    this.#digest = sha256(secret)
  }

  /** Compares in constant time. */
  matches(secret: string): boolean {
    return timingSafeEqual(this.#digest, sha256(secret))
  }
}

/** Generates 256 random bits, as 43 characters that need no escaping anywhere. */
export const randomSecret = (): string => randomBytes(32).toString('base64url')

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
