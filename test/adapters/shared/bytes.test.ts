import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { toDelivery } from '../../../adapters/node.ts'
import { unreadBody } from '../../../adapters/shared/web.ts'
import type { Delivery } from '../../../src/index.ts'

const limit = 65_536
const body = Uint8Array.from({ length: limit }, (_, index) => index % 251)

/** A request whose body arrives byte by byte, and how an adapter reads it. */
const readers: Record<string, () => Delivery['body']> = {
  'node:http'() {
    const request = new IncomingMessage(new Socket())
    for (const byte of body) request.push(Uint8Array.of(byte))
    request.push(null)
    return toDelivery(request).body
  },
  fetch() {
    let next = 0
    const stream = new ReadableStream({
      pull(controller) {
        if (next === limit) controller.close()
        else controller.enqueue(Uint8Array.of(body[next++] as number))
      },
    })
    return unreadBody(new Request('http://host/', { method: 'POST', body: stream, duplex: 'half' } as RequestInit))
  },
}

/** Counts the bytes that are copied while it runs. */
async function countCopies<Result>(run: () => Promise<Result>) {
  let copied = 0
  const set = Uint8Array.prototype.set
  const spy = vi.spyOn(Uint8Array.prototype, 'set').mockImplementation(function (this: Uint8Array, from, offset) {
    copied += from.length
    set.call(this, from, offset)
  })
  const result = await run().finally(() => spy.mockRestore())
  return { copied, result }
}

test.each(Object.entries(readers))(
  '%s: a body that arrives byte by byte is copied three times at most',
  async (_, of) => {
    const read = of() as (limit: number) => Promise<Uint8Array>
    const { copied, result } = await countCopies(async () => read(limit))
    expect(Buffer.compare(result, body)).toBe(0)
    // Each byte is copied when it arrives, and again each time the buffer grows.
    expect(copied).toBeGreaterThanOrEqual(limit - 1)
    expect(copied).toBeLessThanOrEqual(3 * limit)
  },
)
