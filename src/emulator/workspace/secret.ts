import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * A secret as it is kept: its SHA-256. A slow hash guards what can be guessed, such as passwords; these secrets are 256
 * random bits, which nobody guesses, and are checked with every request.
 */
export class SecretHash {
  readonly #digest: Buffer

  constructor(secret: string) {
    this.#digest = sha256(secret)
  }

  /** Takes the same time whatever differs. */
  matches(secret: string): boolean {
    return timingSafeEqual(this.#digest, sha256(secret))
  }
}

/** 256 random bits, in 43 characters that need no escaping anywhere. */
export const randomSecret = (): string => randomBytes(32).toString('base64url')

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
