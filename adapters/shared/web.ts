import type { BodyReader, Delivery } from '../../src/index.ts'
import { Bytes } from './bytes.ts'
import { fixInWeb } from './consumed-body.ts'

/** The body of a `Request`. If another reader has it, `fix` tells the log how to leave it unread. */
export function unreadBody(request: Request, fix = fixInWeb): Delivery['body'] {
  if (request.bodyUsed || request.body?.locked) return { parsed: undefined, fix }
  return (limit) => readStream(request, limit)
}

const readers = new WeakMap<Request, ReadableStreamDefaultReader>()

/** Once a delivery is answered, nothing more of its body is read: it may be too large, or too slow. */
export function endReading(request: Request): void {
  readers
    .get(request)
    ?.cancel()
    .catch(() => {})
}

async function readStream(request: Request, limit: number): Promise<Awaited<ReturnType<BodyReader>>> {
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  readers.set(request, reader)
  const bytes = new Bytes()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return bytes.all()
      if (bytes.size + value.byteLength > limit) return 'too_large'
      bytes.add(value)
    }
  } catch {
    return 'incomplete'
  }
}

type WaitingContext = { waitUntil(promise: Promise<unknown>): void }

const canWait = (context: unknown): context is WaitingContext =>
  typeof (context as Partial<WaitingContext> | null | undefined)?.waitUntil === 'function'

/** Finds the first `waitUntil`. Reading a missing context throws on some platforms. */
export function findWaitUntil(contexts: () => readonly unknown[]): Delivery['waitUntil'] {
  try {
    const platform = contexts().find(canWait)
    return platform && ((promise) => platform.waitUntil(promise))
  } catch {
    return undefined
  }
}
