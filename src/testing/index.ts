export { adapterContract, type MountAdapter, type Mounted } from './contract/adapter.ts'
export { type DatabaseFeatures, databaseContract } from './contract/database.ts'
export type { DatabaseSubject } from './contract/database-process.ts'
export { type InboxSubject, inboxContract } from './contract/inbox.ts'
export type { InboxFeatures, TransactionSubject } from './contract/inbox-check.ts'
export type { Assertion, Runner } from './contract/runner.ts'
export { type StoreFeatures, type StoreSubject, storeContract } from './contract/store.ts'
export { type Delivered, type DeliverOptions, deliver, makeDelivery } from './deliver.ts'
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
export { type BeginTransaction, withTransactions } from './with-transactions.ts'
