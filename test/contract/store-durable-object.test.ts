import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StoreSteps } from '../../src/idempotency/store.ts'
import { storeContract } from '../../src/testing/store-contract.ts'
import { type RunningWorker, WorkerOnDisk } from '../inbox/durable-object/workerd.ts'
import { findRuntime } from '../support/find-runtime.ts'

const binary = findRuntime('workerd')

describe.skipIf(binary === undefined)('durableObjectStore on workerd', () => {
  let disk: WorkerOnDisk
  let worker: RunningWorker
  let origin = ''
  beforeAll(async () => {
    const entry = new URL('../idempotency/durable-object/worker.ts', import.meta.url)
    disk = await WorkerOnDisk.make(binary as string, { entry, classes: [{ binding: 'KEYS', className: 'Keys' }] })
    worker = await disk.start()
    origin = (await worker.origins())[0] as string
  })
  afterAll(async () => {
    await worker?.stop()
    await disk?.remove()
  })

  /** A store whose steps the worker carries out. */
  const subject = () => {
    const store = crypto.randomUUID()
    const call = async <Result>(step: string, ...input: unknown[]): Promise<Result> => {
      const answer = await fetch(origin, { method: 'POST', body: JSON.stringify({ store, step, input }) })
      const { result, error } = (await answer.json()) as { result: Result; error?: string }
      if (error !== undefined) throw new Error(error)
      return result
    }
    const steps: StoreSteps = {
      claim: (...given) => call('claim', ...given),
      renew: (...given) => call('renew', ...given),
      complete: (...given) => call('complete', ...given),
      release: (...given) => call('release', ...given),
    }
    const advance = (ms: number) => call<void>('advance', ms)
    return {
      store: steps,
      advance,
      breakConnection: () => call<void>('break'),
      loseNextAnswer: () => call<void>('lose'),
    }
  }

  storeContract(subject, { test, expect })

  test('a step whose answer was lost is repeated, and is the same step', async () => {
    const { store, loseNextAnswer } = subject()
    await loseNextAnswer()
    expect(await store.claim('key', 'a', 60_000)).toBe('claimed')
    expect(await store.claim('key', 'a', 60_000)).toBe('in-progress')
    await loseNextAnswer()
    expect(await store.complete('key', 'a')).toBe(true)
  })

  test('keys outlive the process', async () => {
    const { store } = subject()
    await store.claim('running', 'a', 60_000)
    await store.claim('done', 'a', 60_000)
    await store.complete('done', 'a')
    await worker.stop('SIGKILL')
    worker = await disk.start()
    origin = (await worker.origins())[0] as string
    expect(await store.claim('running', 'b', 60_000)).toBe('in-progress')
    expect(await store.claim('done', 'b', 60_000)).toBe('done')
  })
})
