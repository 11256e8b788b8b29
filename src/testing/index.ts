export { type Delivered, type DeliverOptions, deliver, makeDelivery } from './deliver.ts'
export type { Assertion, Runner } from './runner.ts'
export { encodePayload, type Payload, samplePayload } from './samples.ts'
export {
  type Draft,
  type Signer,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithTimestampedSignature,
  signWithUrlToken,
} from './signers.ts'
export { type StoreFeatures, type StoreSubject, storeContract } from './store-contract.ts'
export { type BeginTransaction, withTransactions } from './with-transactions.ts'
