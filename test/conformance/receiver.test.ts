import { describe, test } from 'vitest'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { type Scenario, scenarios } from './scenarios/index.ts'
import { ours } from './subject.ts'

const sentences: Record<Scenario, string> = {
  singleValid: 'handles an event that is delivered once',
  sequentialDuplicate: 'handles an event once when it is delivered three times',
  concurrentDuplicate: 'handles an event once when it is delivered twenty times at the same instant',
  orderReversal: 'handles the events of a media item in any order of arrival',
  slowHandler: 'acknowledges immediately even if the handler is slow, and treats the retry as a duplicate',
  slowHandlerAndTimeout:
    'handles an event once when the answer waits for the handler and the sender times out and retries',
  refusedConnection: 'handles an event whose first delivery could not connect',
  restartWithSharedStore: 'handles an event once across a restart, with a store that outlives it',
  restartWithOwnStore: 'handles an event again after a restart, with a store that does not outlive it',
  failedBookkeeping: 'handles an event once even if the store fails to record its completion',
  missingSignature: 'rejects a delivery without a signature',
  malformedSignature: 'rejects a delivery with a malformed signature',
  wrongKey: 'rejects a delivery that was signed with another key',
  staleSignature: 'rejects a delivery that was signed too long ago, or in the future',
  alteredBody: 'rejects a body that was altered after it was signed',
  malformedBody: 'rejects a malformed body',
  unsupportedContentType: 'rejects a content type other than JSON',
  nothingSensitive: 'writes nothing sensitive anywhere',
}

describe.each(Object.keys(mounts) as AdapterName[])('behind %s, the receiver', (adapter) => {
  for (const [scenario, sentence] of Object.entries(sentences) as [Scenario, string][]) {
    test(sentence, () => scenarios[scenario](ours(mounts[adapter])))
  }
})
