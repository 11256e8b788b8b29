// Jest's jsdom hides some globals of Node. What Node's modules also have is taken from there.

type Globals = typeof globalThis

const builtin = (name: string): unknown =>
  (globalThis as { process?: { getBuiltinModule?(name: string): unknown } }).process?.getBuiltinModule?.(name)

export const { TextDecoder, TextEncoder } = (globalThis.TextDecoder ? globalThis : builtin('node:util')) as Pick<
  Globals,
  'TextDecoder' | 'TextEncoder'
>

/** Web Crypto. */
export const { crypto } = (
  globalThis.crypto?.subtle ? globalThis : { crypto: (builtin('node:crypto') as { webcrypto?: unknown })?.webcrypto }
) as Pick<Globals, 'crypto'>

/** Copies JSON data. */
export const copyJson: <Data>(data: Data) => Data =
  globalThis.structuredClone ?? ((data) => JSON.parse(JSON.stringify(data)))
