import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningWorker, WorkerOnDisk } from '../inbox/durable-object/workerd.ts'
import { findRuntime } from '../support/find-runtime.ts'
import { everyFeature } from './every-feature.ts'
import { inboxContract } from './suites/inbox.ts'

const binary = findRuntime('workerd')

describe.skipIf(binary === undefined)('in a Durable Object', () => {
  let disk: WorkerOnDisk
  let worker: RunningWorker
  beforeAll(async () => {
    const entry = new URL('../inbox/durable-object/workers/contract.ts', import.meta.url)
    disk = await WorkerOnDisk.make(binary as string, {
      entry,
      classes: [{ binding: 'CONTRACT', className: 'Contract' }],
    })
    worker = await disk.start()
  })
  afterAll(async () => {
    await worker?.stop()
    await disk?.remove()
  })

  // The suite runs in the same process as the inbox. Here each of its tests is told to run.
  const tell = (name: string) =>
    test(name, async () => {
      const [origin = ''] = await worker.origins()
      const answer = await fetch(origin, { method: 'POST', body: JSON.stringify({ name }) })
      expect(await answer.text()).toBe('passed')
    })
  const never = () => {
    throw new Error('it runs in the object')
  }
  inboxContract(never, { test: tell, expect }, everyFeature)
})
