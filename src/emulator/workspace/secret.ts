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

/**
 * Generates random bytes as characters that need no escaping anywhere. The first is not a dash: a command line would
 * read the text as a flag.
 * @param bytes their number, such as 32 for a secret of 43 characters
 */
export function randomText(bytes: number): string {
  const text = randomBytes(bytes).toString('base64url')
  return text.startsWith('-') ? randomText(bytes) : text
}

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
