import { describe, expect, test } from 'vitest'
import { type Scenario, scenarios } from './scenarios/index.ts'
import { carefulReceiver, wrongReceivers } from './wrong-receivers.ts'

/** The scenarios that catch each fault. */
const catches: Record<keyof typeof wrongReceivers, readonly Scenario[]> = {
  'checks for a duplicate, and records the event later': ['concurrentDuplicate'],
  'runs the handler before it checks for a duplicate': ['sequentialDuplicate', 'concurrentDuplicate'],
  'verifies JSON that it parsed and wrote again': ['singleValid', 'alteredBody'],
  'accepts signatures of any age': ['staleSignature'],
  'assumes that events arrive in order': ['orderReversal'],
  'logs payloads': ['nothingSensitive'],
  'writes payloads to the console': ['nothingSensitive'],
  'releases its claim because completing failed': ['failedBookkeeping'],
}

for (const [fault, caughtBy] of Object.entries(catches) as [keyof typeof catches, Scenario[]][]) {
  describe(`a receiver that ${fault}`, () => {
    test.each(caughtBy)('is caught by %s', async (scenario) => {
      await expect(scenarios[scenario](wrongReceivers[fault])).rejects.toMatchObject({ name: 'AssertionError' })
    })
  })
}

describe('the same receiver without the fault', () => {
  test.each([...new Set(Object.values(catches).flat())])('passes %s', (scenario) =>
    scenarios[scenario](carefulReceiver),
  )
})
