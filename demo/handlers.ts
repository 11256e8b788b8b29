import { setTimeout as pause } from 'node:timers/promises'
import type { Handler, Handlers, MediaEvent } from '../src/index.ts'

/** Told of each piece of work that a handler has finished. */
export type Finished = (event: MediaEvent, work: string, durationMs: number) => void

/** A handler for each type, as an application has them, and one for the types this version does not know. */
export function createHandlers(finished: Finished): { readonly handlers: Handlers; readonly others: Handler } {
  const isLate = lateness()

  /** A handler that does the described work, or rather takes the time of it. */
  const does =
    <Event extends MediaEvent>(describe: (event: Event) => string): Handler<Event> =>
    async (event, { signal }) => {
      const begin = performance.now()
      await pause(10 + Math.random() * 20, undefined, { signal })
      const work = isLate(event) ? `${describe(event)} (late: newer ones came before)` : describe(event)
      finished(event, work, performance.now() - begin)
    }

  const handlers: Handlers = {
    'file.received': does(({ title }) => `added ${title} to the catalogue`),
    'encoding.started': does(({ test }) => (test ? 'greeted the test delivery' : 'showed that encoding began')),
    'partial.finished': does(({ quality }) => `offered a preview in ${quality}`),
    'encoding.finished': does(({ qualities }) => `published in ${qualities.join(', ')}`),
    'encoding.failed': does(({ title }) => `told the owner of ${title}`),
  }
  const putAside = does(() => 'put it aside: an unknown type')
  const others: Handler = (event, context) => {
    if (!Object.hasOwn(handlers, event.type)) return putAside(event, context)
  }
  return { handlers, others }
}

/** The sender keeps no order. An application that needs one compares when the events of a media were emitted. */
function lateness(): (event: MediaEvent) => boolean {
  const newest = new Map<string, Date>()
  return ({ mediaId, emittedAt = new Date(0) }) => {
    const late = emittedAt < (newest.get(mediaId) ?? emittedAt)
    if (!late) newest.set(mediaId, emittedAt)
    return late
  }
}
