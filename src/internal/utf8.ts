// Jest's jsdom lacks TextEncoder and TextDecoder; `node:util` has them.
const from = (
  globalThis.TextDecoder === undefined
    ? (globalThis as { process?: { getBuiltinModule?(name: string): unknown } }).process?.getBuiltinModule?.(
        'node:util',
      )
    : globalThis
) as Pick<typeof globalThis, 'TextDecoder' | 'TextEncoder'>

export const encoder = new from.TextEncoder()

/** Throws on invalid UTF-8. Skips a leading byte order mark. */
export const fatalDecoder = new from.TextDecoder('utf-8', { fatal: true })

/** Invalid UTF-8 becomes U+FFFD. */
export const decoder = new from.TextDecoder()
