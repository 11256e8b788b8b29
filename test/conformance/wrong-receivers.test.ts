import { describe, expect, test } from 'vitest'
import { type Scenario, scenarios } from './scenarios/index.ts'
import { carefulReceiver, wrongReceivers } from './wrong-receivers.ts'

const tooOften = /^expected \[ 'encoding\.finished', .* to deeply equal \[ 'encoding\.finished' \]/
const leaked = /^expected \[ 'title-marker-\w+' \] to deeply equal \[\]/

/** The scenarios that catch each fault, with what they say. */
const catches: Record<keyof typeof wrongReceivers, Partial<Record<Scenario, RegExp>>> = {
  'checks for a duplicate, and records the event later': { concurrentDuplicate: tooOften },
  'runs the handler before it checks for a duplicate': { sequentialDuplicate: tooOften, concurrentDuplicate: tooOften },
  'verifies JSON that it parsed and wrote again': {
    singleValid: /^expected 401 to be 200/,
    alteredBody: /^expected 401 to be 200/,
  },
  'accepts signatures of any age': { staleSignature: /: expected 200 to be 401/ },
  'assumes that events arrive in order': {
    orderReversal: /^expected \[ 'encoding\.finished' \] to deeply equal \[ 'encoding\.finished', …\(4\) \]/,
  },
  'logs payloads': { nothingSensitive: leaked },
  'writes payloads to the console': { nothingSensitive: leaked },
  'releases its claim because completing failed': { failedBookkeeping: /^expected 2 to be 1/ },
}

for (const [fault, caughtBy] of Object.entries(catches) as [keyof typeof catches, Record<Scenario, RegExp>][]) {
  describe(`a receiver that ${fault}`, () => {
    test.each(Object.entries(caughtBy) as [Scenario, RegExp][])('is caught by %s', async (scenario, message) => {
      const caught = { name: 'AssertionError', message: expect.stringMatching(message) }
      await expect(scenarios[scenario](wrongReceivers[fault])).rejects.toMatchObject(caught)
    })
  })
}

describe('the same receiver without the fault', () => {
  test.each([...new Set(Object.values(catches).flatMap((caughtBy) => Object.keys(caughtBy) as Scenario[]))])(
    'passes %s',
    (scenario) => scenarios[scenario](carefulReceiver),
  )
})
