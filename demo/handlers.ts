import { setTimeout as pause } from 'node:timers/promises'
import type { Handler, Handlers, MediaEvent } from '../src/index.ts'

/** Called when a handler has finished its work. */
export type OnFinished = (event: MediaEvent, work: string, durationMs: number) => void

/** Creates a handler for each type, as in an application, and one for test deliveries and unknown types. */
export function createHandlers(onFinished: OnFinished): { readonly handlers: Handlers; readonly others: Handler } {
  const isLate = createLatenessCheck()

  /** Creates a handler that pretends to do the described work: it takes 10 to 30 ms. */
  const does =
    <Event extends MediaEvent>(describe: (event: Event) => string): Handler<Event> =>
    async (event, { signal }) => {
      const startedAt = performance.now()
      await pause(10 + Math.random() * 20, undefined, { signal })
      const work = isLate(event) ? `${describe(event)} (late: newer events came first)` : describe(event)
      onFinished(event, work, performance.now() - startedAt)
    }

  const handlers: Required<Handlers> = {
    'file.received': does(({ title }) => `added ${title} to the catalogue`),
    'encoding.started': does(() => 'showed that encoding began'),
    'partial.finished': does(({ quality }) => `offered a preview in ${quality}`),
    'encoding.finished': does(({ qualities }) => `published in ${qualities.join(', ')}`),
    'encoding.failed': does(({ title }) => `notified the owner of ${title}`),
  }
  const note = does(({ test }) => (test ? 'noted the test delivery' : 'skipped an unknown type'))
  const others: Handler = (event, context) => {
    if (event.test || !Object.hasOwn(handlers, event.type)) return note(event, context)
  }
  return { handlers, others }
}

/** The media item that {@link createPublisher}'s handler fails for. */
export const unpublished = 'Premiere.mp4'

/** Attempts at an event before it becomes a dead letter. */
export const publishAttempts = 3

/** Creates a handler that publishes {@link unpublished} in a CMS, which is down until the event is replayed. */
export function createPublisher(onFinished: OnFinished): Handler {
  let failures = publishAttempts
  return (event) => {
    if (event.title !== unpublished) return
    if (failures === 0) return onFinished(event, 'published in the CMS', 0)
    failures -= 1
    throw new Error(`the CMS answered 503 to PUT /videos/${event.title}: down for maintenance`)
  }
}

/** The sender keeps no order. If you need one, compare the `emittedAt` of a media item's events. */
function createLatenessCheck(): (event: MediaEvent) => boolean {
  const newest = new Map<string, Date>()
  return ({ mediaId, emittedAt = new Date(0) }) => {
    const late = emittedAt < (newest.get(mediaId) ?? emittedAt)
    if (!late) newest.set(mediaId, emittedAt)
    return late
  }
}
