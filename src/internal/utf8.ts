import { TextDecoder, TextEncoder } from './realm.ts'

export const encoder = new TextEncoder()

/** Throws on invalid UTF-8. Skips a leading byte order mark. */
export const fatalDecoder = new TextDecoder('utf-8', { fatal: true })

/** Invalid UTF-8 becomes U+FFFD. */
export const decoder = new TextDecoder()
