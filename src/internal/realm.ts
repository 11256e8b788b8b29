// Jest's jsdom hides some globals of Node. What Node's modules also have is taken from there.

type Globals = typeof globalThis

const { process } = globalThis as { process?: { getBuiltinModule?(name: string): unknown } }

const builtin = <Part>(name: string): Part => process?.getBuiltinModule?.(name) as Part

const texts: Pick<Globals, 'TextDecoder' | 'TextEncoder'> =
  globalThis.TextDecoder === undefined ? builtin('node:util') : globalThis

export const { TextDecoder, TextEncoder } = texts

/** Web Crypto. */
export const crypto: Globals['crypto'] =
  globalThis.crypto?.subtle === undefined
    ? (builtin<{ webcrypto: Globals['crypto'] } | undefined>('node:crypto')?.webcrypto ?? globalThis.crypto)
    : globalThis.crypto

/** Copies JSON data. */
export const copyJson: <Data>(data: Data) => Data =
  globalThis.structuredClone ?? ((data) => JSON.parse(JSON.stringify(data)))
