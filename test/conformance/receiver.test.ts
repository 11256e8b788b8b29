import { describe, test } from 'vitest'
import { type AdapterName, mounts } from '../adapters/mounts.ts'
import { type Scenario, scenarios } from './scenarios/index.ts'
import { ours } from './subject.ts'

const sentences: Record<Scenario, string> = {
  singleValid: 'handles an event that is delivered once',
  sequentialDuplicate: 'handles an event once that is delivered three times',
  concurrentDuplicate: 'handles an event once that is delivered twenty times at the same instant',
  orderReversal: 'handles the events of a media in whatever order they come',
  slowHandler: 'acknowledges at once however slow the handler, and takes the retry for a duplicate',
  slowHandlerAndTimeout: 'handles an event once whose sender timed out and retried, where the answer waits for it',
  refusedConnection: 'handles an event whose first delivery found nobody listening',
  restartWithSharedStore: 'handles an event once across a restart, with a store that outlives it',
  restartWithOwnStore: 'handles an event again after a restart, with a store that does not outlive it',
  failedBookkeeping: 'handles an event once though the store failed to note that it is done',
  missingSignature: 'refuses a delivery without a signature',
  malformedSignature: 'refuses a delivery with a malformed signature',
  wrongKey: 'refuses a delivery that was signed with another key',
  staleSignature: 'refuses a delivery that was signed too long ago, or in the future',
  alteredBody: 'refuses a body that was altered after it was signed',
  malformedBody: 'refuses a malformed body',
  unsupportedContentType: 'refuses other content types',
  nothingSensitive: 'writes nothing sensitive anywhere',
}

describe.each(Object.keys(mounts) as AdapterName[])('behind %s, the receiver', (adapter) => {
  for (const [scenario, sentence] of Object.entries(sentences) as [Scenario, string][]) {
    test(sentence, () => scenarios[scenario](ours(mounts[adapter])))
  }
})
