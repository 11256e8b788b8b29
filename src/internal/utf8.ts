// Jest's jsdom has no TextEncoder and TextDecoder. Node also has them in a module.
const from = (
  globalThis.TextDecoder === undefined
    ? (globalThis as { process?: { getBuiltinModule?(name: string): unknown } }).process?.getBuiltinModule?.(
        'node:util',
      )
    : globalThis
) as Pick<typeof globalThis, 'TextDecoder' | 'TextEncoder'>

export const encoder = new from.TextEncoder()

/** Fatal: bytes that are not UTF-8 are an error, and do not become U+FFFD. A leading byte order mark is skipped. */
export const fatalDecoder = new from.TextDecoder('utf-8', { fatal: true })

/** Bytes that are not UTF-8 become U+FFFD. */
export const decoder = new from.TextDecoder()
