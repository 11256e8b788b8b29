import type { EventState } from '../../../inbox/reading.ts'
import { shellQuoted } from '../../shared/text.ts'
import type { InboxAction } from './action.ts'
import { eventCommand } from './command-line.ts'
import { recordOperation } from './record-operation.ts'
import { whyUnknown } from './show.ts'

const because: Readonly<Record<EventState, string>> = {
  waiting: 'it waits to start',
  running: 'its handlers are running',
  retrying: 'it started waiting just now; try again',
  dead: 'it is a dead letter',
  handled: 'it was handled',
}

export const retry: InboxAction = {
  help: ['retry <key>', 'starts the next attempt of an event now, if it waits for one'],
  flags: ['reason'],
  takes: 'key',
  async run(context) {
    const { inbox, values, screen } = context
    const [key = ''] = context.words
    // First: an event on its way from one state to the next may be in neither list.
    const next = `To see its outcome: ${await eventCommand(context, 'show', key)}`
    const isRetried = await inbox.events.retryNow(key)
    if (isRetried) await recordOperation(context, { act: 'retry', keys: [key] })
    if (values.json) screen.json({ retried: isRetried })
    if (isRetried) {
      if (!values.json) screen.print(`the next attempt starts within a second, if a server has the inbox open\n${next}`)
      return 0
    }
    const state = (await inbox.events.get(key))?.state
    const why = state === undefined ? whyUnknown(inbox.events.states) : because[state]
    screen.note(`no event with the key ${shellQuoted(key)} waits for its next attempt: ${why}`)
    if (state === 'dead') screen.note(`a dead letter can be replayed: ${await eventCommand(context, 'replay', key)}`)
    return 1
  },
}
