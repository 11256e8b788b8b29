import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { createContext, runInContext } from 'node:vm'
import { build } from 'esbuild'
import { beforeAll, describe, expect, test } from 'vitest'
import type * as entry from '../../src/index.ts'
import type * as testing from '../../src/testing/index.ts'
import { silent } from '../support/silent.ts'

// A test runner loads the package in a realm of its own, whose `Uint8Array`, `Error` and `Date` are others than those of the
// code that calls it. That of Jest with jsdom has no TextDecoder and no setImmediate.

const sourceOf = async (entryPoint: string) => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(entryPoint, import.meta.url))],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'iife',
    globalName: 'exported',
    alias: { '#crypto': fileURLToPath(new URL('../../src/internal/crypto/node.ts', import.meta.url)) },
    external: ['express'],
  })
  return outputFiles[0]?.text as string
}

let core: string
let helpers: string

beforeAll(async () => {
  core = await sourceOf('../../src/index.ts')
  helpers = await sourceOf('../../src/testing/index.ts')
})

/** Loads a bundle in a realm with what jsdom has of Node. */
function load<Exports>(source: string): Exports {
  const { performance, setTimeout, clearTimeout, setInterval, clearInterval, URL, Headers, crypto } = globalThis
  const names = { performance, setTimeout, clearTimeout, setInterval, clearInterval, URL, Headers, crypto }
  const require = createRequire(import.meta.url)
  const { AbortController, AbortSignal, queueMicrotask } = globalThis
  const context = createContext({
    Buffer,
    process,
    console,
    require,
    AbortController,
    AbortSignal,
    queueMicrotask,
    ...names,
  })
  return runInContext(`${source}; exported`, context)
}

const options = { secret: 'a secret', header: 'x-signature' }

describe('a receiver in another realm, without TextDecoder', () => {
  test.each(['bytes', 'a function that reads bytes'])(
    'accepts a delivery whose body is %s of this one',
    async (kind) => {
      const { createReceiver, hmacSignature } = load<typeof entry>(core)
      const { makeDelivery, samplePayload, signWithHmac } = load<typeof testing>(helpers)
      const handled: string[] = []
      const receiver = createReceiver({ verify: hmacSignature(options), logger: silent })
      receiver.on('encoding.finished', ({ mediaId }) => void handled.push(mediaId))
      const delivery = await makeDelivery(samplePayload('encoding.finished'), { sign: signWithHmac(options) })
      const body = Uint8Array.from(delivery.body as Uint8Array)
      const acknowledgement = await receiver.receive({ ...delivery, body: kind === 'bytes' ? body : () => body })
      expect(acknowledgement).toMatchObject({ status: 200, outcome: 'accepted' })
      await receiver.close()
      expect(handled).toHaveLength(1)
    },
  )

  test('keeps its unreadable bytes', async () => {
    const { createReceiver, unverified, memoryInbox } = load<typeof entry>(core)
    const receiver = createReceiver({ verify: unverified(), inbox: memoryInbox(), logger: silent })
    const delivery = { method: 'POST', url: '/', headers: new Headers(), body: Buffer.from('[]') }
    expect((await receiver.receive(delivery)).outcome).toBe('malformed')
    const [kept] = await receiver.inbox.deadLetters.list()
    expect(String(Buffer.from((kept as { unreadable?: { body: Uint8Array } }).unreadable?.body ?? []))).toBe('[]')
    await receiver.close()
  })

  test('takes dates and errors of this one', async () => {
    const { RetryAfter, createReceiver, unverified } = load<typeof entry>(core)
    const { delayMs, message } = new RetryAfter(new Date(Date.now() + 60_000), { cause: new Error('busy') })
    expect(delayMs).toBeGreaterThan(50_000)
    expect(message).toMatch(/: busy$/)
    const receiver = createReceiver({ verify: unverified(), logger: silent }).onAny(() => {})
    const found = { type: 'encoding.finished', mediaId: 'm', emittedAt: new Date() } as const
    expect(await receiver.accept(found)).toBe('accepted')
    await receiver.close()
  })
})
