import { outcomeWords } from '../../../handlers/overdue.ts'
import { mediaBeginning } from '../../../inbox/operations/finding.ts'
import type { DeadLetter, EventState, InspectedInbox } from '../../../inbox/reading.ts'
import { shellQuoted } from '../../shared/text.ts'
import type { ActionContext, InboxAction } from './action.ts'
import { eventCommand } from './command-line.ts'
import { bodyJson, counted, deadLetterJson, deadLettersText, eventsText, inOneLine } from './print.ts'
import { whyUnknown } from './show.ts'
import { named, type ShownEvent, shownEvent, type WithShortId } from './shown.ts'

const maxNamed = 10

/** Dead letters searched for unreadable deliveries. */
const maxScanned = 1_000

export const media: InboxAction = {
  help: [
    'media <id>',
    'shows the outcome of each event of a media item, oldest first; the beginning of its id will do',
  ],
  flags: [],
  takes: 'id',
  async run(context) {
    const { inbox, values, screen } = context
    const [given = ''] = context.words
    const exact = await inbox.history(given)
    const candidates = exact.length > 0 ? [] : await mediaBeginning(inbox, given)
    const [mediaId = given] = candidates.length === 1 ? candidates : []
    const records = mediaId === given ? exact : await inbox.history(mediaId)
    const events = await Promise.all(records.map((record) => shownEvent(inbox, record)))
    const unreadable = await Promise.all((await unreadableWith(inbox, mediaId)).map(named))
    if (values.json) screen.json({ events, unreadable: unreadable.map(deadLetterJson) })
    else {
      const pauses = await inbox.pauses.list()
      if (events.length > 0)
        screen.print(`${eventsText(events, pauses, screen.paint)}\n${await nextStep(events, context)}`)
      if (unreadable.length > 0) screen.print(await unreadableText(unreadable, context))
    }
    if (events.length > 0 || unreadable.length > 0) return 0
    if (candidates.length > 1)
      screen.note(`media items with this prefix: ${candidates.slice(0, maxNamed).map(shellQuoted).join(' ')}`)
    screen.note(`no event of the media item ${shellQuoted(mediaId)} is known: ${whyUnknown(inbox.events.states)}`)
    return 1
  },
}

/** Recent unreadable deliveries whose body mentions the media item. */
async function unreadableWith({ deadLetters }: InspectedInbox, mediaId: string): Promise<readonly DeadLetter[]> {
  const newest = await deadLetters.list({ limit: maxScanned })
  const written = JSON.stringify(mediaId)
  return newest.filter(({ unreadable }) => {
    const content = unreadable && bodyJson(unreadable.body)
    return content !== undefined && 'body' in content && content.body.includes(written)
  })
}

async function nextStep(events: readonly ShownEvent[], context: ActionContext): Promise<string> {
  const open = events.filter(({ state }) => state !== 'handled')
  const missing = events.flatMap(({ overdue }) =>
    overdue?.outcome === 'missing' ? [`${outcomeWords.missing}: ${overdue.awaited.map(inOneLine).join(' or ')}`] : [],
  )
  if (open.length === 0) return [`${counted(events.length, 'event')}, handled`, ...missing].join('\n')
  // Dead letters first: they stay until an operator replays them.
  const [worst] = [...open].sort((a, b) => urgency.indexOf(a.state) - urgency.indexOf(b.state))
  const are = `${open.length} of ${counted(events.length, 'event')} ${open.length === 1 ? 'is' : 'are'} not handled yet`
  const command = await eventCommand(context, 'show', worst?.key ?? '')
  return `${are}. All about ${open.length === 1 ? 'it' : 'one'}:\n  ${command}`
}

const urgency: readonly EventState[] = ['dead', 'retrying', 'running', 'waiting']

async function unreadableText(unreadable: readonly WithShortId<DeadLetter>[], context: ActionContext) {
  const command = await eventCommand(context, 'show', unreadable[0]?.key ?? '')
  return [
    'Unreadable deliveries that mention it:',
    deadLettersText(unreadable, context.screen.paint),
    `All about the newest one:\n  ${command}`,
  ].join('\n')
}
