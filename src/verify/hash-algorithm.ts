/** A hash that an HMAC can be made with. */
export type HashAlgorithm = 'sha1' | 'sha256' | 'sha512'
