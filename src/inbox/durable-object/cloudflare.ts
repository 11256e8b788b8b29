// Entry for Cloudflare Workers: what runs in Durable Objects.

export { type DurableObjectStoreOptions, durableObjectStore, StoreObject } from '../../idempotency/durable-object.ts'
export {
  type DurableObjectInboxOptions,
  durableObjectInbox,
  type InboxObject,
  type InboxObjectOptions,
  inboxObject,
  type ObjectNamespace,
  type ObjectSql,
  type ObjectState,
  type ObjectStorage,
  type ObjectTransactional,
  type Synchronous,
} from '../durable-object.ts'
