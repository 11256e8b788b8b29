import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * Stores the SHA-256 of a secret. Slow hashes are for guessable secrets, such as passwords: these are 256 random bits,
 * checked with every request.
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

/**
 * Generates random characters that need no escaping anywhere. Never starts with a dash, which a command line would read
 * as a flag.
 * @param bytes of randomness, such as 32 for 43 characters
 */
export function randomText(bytes: number): string {
  const text = randomBytes(bytes).toString('base64url')
  return text.startsWith('-') ? randomText(bytes) : text
}

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
