import type { EventPage, EventQuery, EventState, InspectedInbox } from '../../../inbox/reading.ts'
import { WebhookError } from '../../../index.ts'
import { UsageError } from '../../shared/flags.ts'
import type { Screen } from '../../shared/screen.ts'
import { shellQuoted } from '../../shared/text.ts'
import type { InboxAction } from './action.ts'
import { eventCommand } from './command-line.ts'
import { counted, eventsText } from './print.ts'
import { shownEvent } from './shown.ts'

/** @throws Error if the inbox does not know which events are in this state */
function checkState({ events: { states } }: InspectedInbox, state: EventState | undefined): void {
  if (state === undefined || states.includes(state)) return
  const why = {
    running: 'only the process that handles the events of a file knows which are running; here they count as waiting',
    handled: 'an inbox in Redis forgets an event once it is handled',
  }
  throw new Error(why[state as keyof typeof why] ?? `this inbox has no events that are ${state}`)
}

/** Skips empty pages: an inbox scans a bounded number of events per page, and none may match. */
async function nextPage(
  { events }: InspectedInbox,
  query: EventQuery,
  { signal, progress }: Screen,
): Promise<EventPage> {
  try {
    let page = await events.list(query)
    while (page.events.length === 0 && page.cursor !== undefined) {
      signal.throwIfAborted()
      progress('searching')
      page = await events.list({ ...query, cursor: page.cursor })
    }
    return page
  } catch (error) {
    if (!(error instanceof WebhookError && error.code === 'invalid_option')) throw error
    // Only the cursor is left: the flags have checked the rest.
    throw new UsageError('--cursor must come from the previous page, with the same flags', { cause: error })
  } finally {
    progress(undefined)
  }
}

export const events: InboxAction = {
  help: ['events', 'lists events in all states, or those that the flags name, newest first'],
  flags: ['state', 'type', 'media', 'oldest', 'limit', 'cursor'],
  async run({ inbox, target, values, screen }) {
    const { state, type, media, oldest, limit, cursor, json } = values
    checkState(inbox, state)
    const query: EventQuery = {
      ...(state !== undefined && { state }),
      ...(type !== undefined && { type }),
      ...(media !== undefined && { mediaId: media }),
      ...(oldest && { order: 'oldest' }),
      ...(limit !== undefined && { limit }),
      ...(cursor !== undefined && { cursor }),
    }
    const { events: listed, cursor: next } = await nextPage(inbox, query, screen)
    const found = await Promise.all(listed.map((event) => shownEvent(inbox, event)))
    if (json) {
      screen.json({ events: found, cursor: next })
      return 0
    }
    if (found.length > 0) screen.print(eventsText(found, await inbox.pauses.list(), screen.paint))
    screen.print(counted(found.length, 'event'))
    if (next !== undefined) screen.print(`There may be more. Repeat the command with --cursor=${shellQuoted(next)}`)
    else if (found.length > 0)
      screen.print(`All about one of them: ${await eventCommand({ inbox, target }, 'show', found[0]?.key ?? '')}`)
    return 0
  },
}
