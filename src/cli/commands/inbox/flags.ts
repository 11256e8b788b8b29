import { eventStates } from '../../../inbox/operations/event-query.ts'
import type { CommandInput } from '../../shared/command.ts'
import { choice, type Flag, port, text, toggle, UsageError, wholeNumber } from '../../shared/flags.ts'
import { placeFlags, targetFlag } from './target.ts'

const unitsMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Takes a time, or how long ago it was. */
const since = (help: string): Flag<Date> => ({
  takes: '<time>',
  help,
  read: (given) => {
    const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(given) ?? []
    if (unit !== undefined) return new Date(Date.now() - Number(count) * unitsMs[unit as keyof typeof unitsMs])
    const time = /^\d{4}-\d\d-\d\d/.test(given) ? Date.parse(given) : Number.NaN
    if (!Number.isNaN(time)) return new Date(time)
    throw new UsageError('takes a duration such as 15m, 2h or 1d, or a time such as 2026-03-01T12:00:00Z')
  },
})

/** Default port of `serve`. */
export const servePort = 4020

const portFlag = port(servePort)

export const actionFlags = {
  state: choice(eventStates, 'events: only those in this state'),
  type: text('<type>', 'events, replay --all, discard --all: only events of this type'),
  media: text('<id>', 'events: only those of this media item'),
  oldest: toggle('events: the oldest first'),
  limit: wholeNumber('<n>', 'events, dead-letters, expected: list at most this many (default: 100)', 1),
  cursor: text('<text>', 'events: continue after the page that ended with this cursor'),
  offset: wholeNumber('<n>', 'dead-letters: skip this many'),
  all: toggle('replay, discard: all dead letters, oldest first'),
  since: since('replay --all, discard --all: only what died since: 15m, 2h, 1d, or an ISO time'),
  perSecond: wholeNumber('<n>', 'replay: at most this many in a second (default: as fast as the inbox takes them)', 1),
  yes: toggle('discard --all: confirm the permanent deletion; pause: even a handler that no event names'),
  handler: text('<name>', 'pause, resume: only this handler'),
  reason: text('<text>', 'replay, discard, retry, stop, pause, resume: why, for the page that shows who did what'),
  port: { ...portFlag, help: `serve: ${portFlag.help}` },
  redact: toggle('serve: hide payloads, titles and the bytes of unreadable deliveries'),
  print: toggle('migrate: print the SQL, and change nothing'),
}

export const flags = { target: targetFlag, ...placeFlags, ...actionFlags }

export type InboxInput = CommandInput<typeof flags>
