import type { MediaEvent } from '../events/catalogue.ts'
import type { Logger } from '../internal/logger.ts'
import type { MaybePromise } from '../internal/maybe-promise.ts'

/** An event on its way into the inbox. */
export interface AcceptedEvent {
  readonly event: MediaEvent
  readonly receivedAt: Date
}

/** What an inbox says of an event it was given. */
export type Acceptance = 'accepted' | 'duplicate' | 'overloaded'

/** What {@link Inbox.handleNow} says: `in-progress` means that another process is handling the event. */
export type ImmediateResult = 'handled' | 'failed' | 'duplicate' | 'in-progress' | 'overloaded'

/** One try at an event: every handler that has not succeeded yet runs once. */
export interface Attempt {
  /** 1 for the first. */
  readonly number: number
  /** Names of the handlers that succeeded in an earlier attempt. */
  readonly completed: readonly string[]
  /** Whether the handling must stop: the inbox gave up on it when it closed, or the lease was lost. */
  readonly aborted: boolean
  /** Aborted at the same moment. Read only when a handler asks, so that it can be made then. */
  readonly signal: AbortSignal
  /** Told of a handler that succeeded while others are still to run, where an inbox can keep that through a crash. */
  readonly succeeded?: ((handler: string) => MaybePromise<void>) | undefined
}

/** A handler that failed, and the text of its error. */
export interface HandlerFailure {
  readonly handler: string
  readonly message: string
}

/** What an attempt came to, and what the inbox has to do next. */
export type HandlingResult =
  | { readonly status: 'done' }
  | {
      /** Run the handlers that have not completed again after `delayMs`. */
      readonly status: 'retry'
      readonly delayMs: number
      readonly completed: readonly string[]
    }
  | {
      /** No attempts are left: keep it as a dead letter. */
      readonly status: 'dead'
      readonly completed: readonly string[]
      readonly failures: readonly HandlerFailure[]
    }

/** Runs the handlers of an event. Never rejects. */
export type Handle = (event: MediaEvent, receivedAt: Date, attempt: Attempt) => Promise<HandlingResult>

/** A delivery that passed verification and could not be read. */
export interface RefusedDelivery {
  /** Why not. */
  readonly reason: string
  readonly receivedAt: Date
  /** Without its query, which may hold a secret. */
  readonly url: string
  /** The id that the verifier vouches for, or that of the header which makes the event key. */
  readonly eventId: string | undefined
  /** As it was sent, unless another parser had read it: then its JSON. */
  readonly body: Uint8Array
}

/** Reads a refused delivery again. Throws or rejects, with a WebhookError `malformed`, while it cannot be read. */
export type ReadRefused = (refused: RefusedDelivery) => MaybePromise<MediaEvent>

/** An event that could not be handled, or a delivery that could not be read. */
export interface DeadLetter {
  /** The event's; that of a refused delivery is made of its body. */
  readonly key: string
  readonly receivedAt: Date
  /** `undefined` for a refused delivery. */
  readonly event: MediaEvent | undefined
  readonly refused?: RefusedDelivery | undefined
  /** How many attempts were made. */
  readonly attempts: number
  /** Names of the handlers that did succeed; a replay leaves them out. */
  readonly completed: readonly string[]
  readonly failures: readonly HandlerFailure[]
  readonly diedAt: Date
}

/** A dead letter that is an event. */
export interface DeadEvent extends DeadLetter {
  readonly event: MediaEvent
}

/** What could not be handled, newest first. */
export interface DeadLetters {
  /** @param options `limit` (100 by default) letters after the first `offset` (0). */
  list(options?: { readonly limit?: number; readonly offset?: number }): MaybePromise<readonly DeadLetter[]>
  get(key: string): MaybePromise<DeadLetter | undefined>
  /**
   * Hands the event to the handlers that had failed, with fresh attempts; a refused delivery is read again before.
   * `false`: no dead letter has that key.
   * @throws WebhookError `in_progress`, `overloaded` or `closing` when it cannot be taken, `malformed` when it still
   * cannot be read; the letter is kept then
   */
  replay(key: string): MaybePromise<boolean>
  /** Forgets the event for good. `false`: no dead letter has that key. */
  discard(key: string): MaybePromise<boolean>
}

/** How full an inbox is, in events. */
export interface InboxStats {
  /** Accepted, not begun. */
  readonly waiting: number
  readonly running: number
  /** Failed, waiting for the next attempt. */
  readonly retrying: number
  readonly deadLetters: number
}

/** An event that was accepted and not finished when the inbox closed. */
export interface UnfinishedEvent extends AcceptedEvent {
  readonly state: 'waiting' | 'running' | 'retrying'
}

/** What closing came to. */
export interface CloseReport {
  /** Empty after a clean close. A memory inbox loses these; a durable one hands them out again when it is opened. */
  readonly unfinished: readonly UnfinishedEvent[]
}

/** How {@link Inbox.close} closes. */
export interface CloseOptions {
  /**
   * How long to wait for events to finish, in ms.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number
}

/** How an event is accepted. */
export interface AcceptOptions {
  /** Given the promise of the event's end by an inbox that would lose the event if the runtime stopped. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined
}

/**
 * Keeps accepted events until their handlers have finished. `testing` holds the contract suite every inbox passes.
 */
export interface Inbox {
  /**
   * One atomic step that stores the event or says it is a duplicate. Throws or rejects when it cannot tell, with a
   * WebhookError `in_progress` where another process has claimed the event and may not have it safe yet.
   */
  accept(accepted: AcceptedEvent, options?: AcceptOptions): MaybePromise<Acceptance>
  /**
   * Accepts the event, makes one attempt and answers with its result; a duplicate that arrives meanwhile shares it.
   * After a failure the event is forgotten, so that the sender's retry is handled. Only where a result can be waited
   * for: `ack: 'handled'` needs it.
   */
  handleNow?(accepted: AcceptedEvent): Promise<ImmediateResult>
  /**
   * Keeps a delivery that passed verification and could not be read among the dead letters, so that a version that can
   * read it loses nothing. Only where it outlives the process.
   */
  refuse?(refused: RefusedDelivery): MaybePromise<void>
  /**
   * Begins to hand events to `handle`. Called once, by the receiver.
   * @param readRefused for the replay of what {@link Inbox.refuse} keeps
   */
  start(handle: Handle, logger: Logger, readRefused?: ReadRefused): MaybePromise<void>
  /** Stops accepting, finishes what it can in time, and says what it could not. */
  close(options?: CloseOptions): Promise<CloseReport>
  stats(): MaybePromise<InboxStats>
  readonly deadLetters: DeadLetters
}
