import type { MediaEvent } from '../../events/catalogue.ts'
import type { AcceptedEvent, HandlerFailure } from '../inbox.ts'

/** An event as the data of a BullMQ job: JSON has no dates. */
export interface EventData {
  readonly event: Omit<MediaEvent, 'emittedAt'> & { readonly emittedAt?: string }
  readonly receivedAt: string
}

/** What handling came to so far, as the progress of a BullMQ job. */
export interface EventProgress {
  readonly completed: readonly string[]
  /** Of an event that is, or is about to become, a dead letter. */
  readonly failures?: readonly HandlerFailure[]
}

/** Whether a job is an event; whoever reaches the queue can add others. */
export function isEvent(data: unknown): data is EventData {
  const { event, receivedAt } = (data ?? {}) as Partial<EventData>
  return typeof event?.key === 'string' && typeof receivedAt === 'string'
}

export function dataOf({ event, receivedAt }: AcceptedEvent): EventData {
  const { emittedAt, ...rest } = event
  const written = emittedAt === undefined ? {} : { emittedAt: emittedAt.toISOString() }
  return { event: { ...rest, ...written }, receivedAt: receivedAt.toISOString() }
}

export function acceptedOf({ event, receivedAt }: EventData): AcceptedEvent {
  const emittedAt = event.emittedAt === undefined ? {} : { emittedAt: new Date(event.emittedAt) }
  return { event: { ...event, ...emittedAt } as MediaEvent, receivedAt: new Date(receivedAt) }
}

/** A job that has none yet has 0 for its progress. */
export const progressOf = (progress: unknown): EventProgress =>
  typeof progress === 'object' && progress !== null ? (progress as EventProgress) : { completed: [] }
