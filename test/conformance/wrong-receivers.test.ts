import { describe, expect, test } from 'vitest'
import { type Scenario, scenarios } from './scenarios/index.ts'
import { carefulReceiver, wrongReceivers } from './wrong-receivers.ts'

/** Which scenarios catch which fault; the others say nothing of it. */
const catches: Record<keyof typeof wrongReceivers, readonly Scenario[]> = {
  'checks whether it knows the event, and notes it later': ['concurrentDuplicate'],
  'has its effect before it looks for a duplicate': ['sequentialDuplicate', 'concurrentDuplicate'],
  'verifies JSON that it parsed and wrote anew': ['singleValid', 'alteredBody'],
  'accepts signatures of any age': ['staleSignature'],
  'assumes that events come in order': ['orderReversal'],
  'logs payloads': ['nothingSensitive'],
  'writes payloads to the console': ['nothingSensitive'],
  'gives its claim back because the bookkeeping failed': ['failedBookkeeping'],
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
