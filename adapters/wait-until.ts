import type { Delivery } from '../src/index.ts'

type Platform = { waitUntil(promise: Promise<unknown>): void }

const isPlatform = (context: unknown): context is Platform =>
  typeof (context as Partial<Platform> | null | undefined)?.waitUntil === 'function'

/** The `waitUntil` of the first context that has one. Some platforms throw where there is none to be read. */
export function findWaitUntil(contexts: () => readonly unknown[]): Delivery['waitUntil'] {
  try {
    const platform = contexts().find(isPlatform)
    return platform && ((promise) => platform.waitUntil(promise))
  } catch {
    return undefined
  }
}
