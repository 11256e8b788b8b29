export { WebhookError, type WebhookErrorCode, webhookErrorCodes } from './errors.ts'
export type { BodyOptions } from './events/body.ts'
export type { Challenge, ChallengeRequest } from './events/challenge.ts'
export { defineSender, type ListedEvent, type SenderDefinition, type SenderReading } from './events/define-sender.ts'
export type { UnknownEventType } from './events/event.ts'
export type { LookupOutcome } from './events/lookup.ts'
export {
  type EncodingFailedEvent,
  type EncodingFinishedEvent,
  type EncodingStartedEvent,
  type EventType,
  eventTypes,
  type FileReceivedEvent,
  type KnownEvent,
  type MediaEvent,
  type MediaStatus,
  type MediaType,
  type PartialFinishedEvent,
  type UnknownEvent,
} from './events/media-service/catalogue.ts'
export { type LookedUpEvent, lifecycleKey } from './events/media-service/lookup.ts'
export type { EventKeySource } from './events/parse.ts'
export type { AnySender } from './events/sender.ts'
export type {
  AnyEventOf,
  EventOf,
  MediaService,
  Sender,
  SenderEvent,
  SenderLookup,
  StandardSchema,
  TypeOf,
} from './events/types.ts'
export type { ExpectationOptions, Overdue, OverdueHandler } from './handlers/expectations.ts'
export type {
  ErrorHandler,
  FailedRun,
  Handler,
  HandlerContext,
  HandlerOptions,
  Handlers,
  Rate,
} from './handlers/handler.ts'
export type { AttemptReport, RunReport, RunSpan, StartedRun } from './handlers/reports.ts'
export type { RetryOptions } from './handlers/retry.ts'
export { PermanentFailure, RetryAfter } from './handlers/thrown.ts'
export { defineStore } from './idempotency/define-store.ts'
export { type LruStoreOptions, lruStore } from './idempotency/lru.ts'
export type { Claim, Claims, ClaimsOptions, IdempotencyStore, StoreSteps } from './idempotency/store.ts'
export { defineInbox } from './inbox/define-inbox.ts'
export type {
  Acceptance,
  AcceptedEvent,
  AcceptOptions,
  ActivityObserver,
  Attempt,
  AttemptResult,
  CloseOptions,
  CloseReport,
  EventOrder,
  Expectation,
  ExpectationChanges,
  Handle,
  HandlerName,
  ImmediateResult,
  Inbox,
  InboxDefinition,
  InboxHost,
  InboxStorage,
  MessageOptions,
  MessageResult,
  ParseUnreadable,
  StoppableRun,
  Transactional,
  TransactionScope,
  UnfinishedEvent,
} from './inbox/inbox.ts'
export { type MemoryInboxOptions, memoryInbox } from './inbox/memory.ts'
export type {
  ActivityMinute,
  DeadEvent,
  DeadLetter,
  DeadLetters,
  Durations,
  EventOutcomes,
  EventPage,
  EventQuery,
  EventRecord,
  EventState,
  FailedAttempt,
  HandlerFailure,
  InboxEvents,
  InboxStats,
  InspectedDeadLetters,
  InspectedInbox,
  KeysOptions,
  NewOperation,
  OpenExpectation,
  Operation,
  OperationQuery,
  Operations,
  Pause,
  PauseOptions,
  Pauses,
  ReadableInbox,
  ReplayAllOptions,
  ReplayReport,
  ResumeOptions,
  TraceCarrier,
  UnreadableDelivery,
} from './inbox/reading.ts'
export type { HashAlgorithm, PublicKeyAlgorithm, SignatureEncoding } from './internal/crypto/encoding.ts'
export type { Logger } from './internal/logger.ts'
export type { MaybePromise } from './internal/maybe-promise.ts'
export type {
  Acknowledgement,
  BodyReader,
  Delivery,
  DeliveryHeaders,
  DeliveryOutcome,
  EventCounts,
  ParsedBody,
  RejectionCode,
} from './receiver/delivery.ts'
export type { ConflictReport, DeliveryReport, Hooks } from './receiver/hooks.ts'
export type { LookupOptions, Receiver, ReceiverOptions, ReceiverSetup } from './receiver/options.ts'
export { createReceiver } from './receiver/receiver.ts'
export type { DeliverySpan, Telemetry } from './receiver/telemetry.ts'
export { anyOf } from './verify/any-of.ts'
export { type BasicAuthOptions, basicAuth } from './verify/basic-auth.ts'
export { type HeaderTokenOptions, headerToken } from './verify/header-token.ts'
export { type HmacSignatureOptions, hmacSignature } from './verify/hmac-signature.ts'
export { type PublicKeySignatureOptions, publicKeySignature } from './verify/public-key-signature.ts'
export type { GetSecrets, Secrets } from './verify/secrets.ts'
export type { SignatureHeaderOptions } from './verify/signature-header.ts'
export type { SignedTemplate } from './verify/signed-content.ts'
export { type SnsSignatureOptions, snsSignature } from './verify/sns-signature.ts'
export { type StandardWebhooksOptions, standardWebhooks } from './verify/standard-webhooks.ts'
export { type TimestampedSignatureOptions, timestampedSignature } from './verify/timestamped-signature.ts'
export { unverified } from './verify/unverified.ts'
export { type UrlTokenOptions, urlToken } from './verify/url-token.ts'
export type { SignedDelivery, Verification, Verifier } from './verify/verifier.ts'
