/** A hash that an HMAC can be made with. */
export type HashAlgorithm = 'sha1' | 'sha256' | 'sha512'

/** How the bytes of a signature are written in a header. */
export type SignatureEncoding = 'hex' | 'base64'
