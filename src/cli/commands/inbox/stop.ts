import { shellQuoted } from '../../shared/text.ts'
import type { InboxAction } from './action.ts'
import { eventCommand } from './command-line.ts'
import { stateWords } from './print.ts'
import { recordOperation } from './record-operation.ts'
import { whyUnknown } from './show.ts'

export const stop: InboxAction = {
  help: ['stop <key>', 'stops the running handler of an event (Postgres only)'],
  flags: ['reason'],
  takes: 'key',
  async run(context) {
    const { inbox, target, values, screen } = context
    const [key = ''] = context.words
    // First: an event on its way from one state to the next may be in neither list.
    const next = `To see its outcome: ${await eventCommand(context, 'show', key)}`
    const isAsked = (await inbox.events.stop?.(key)) ?? false
    if (isAsked) await recordOperation(context, { act: 'stop', keys: [key] })
    if (values.json) screen.json({ asked: isAsked })
    if (isAsked) {
      if (!values.json)
        screen.print(`asked its process to stop the handler; the attempt then fails like a timeout\n${next}`)
      return 0
    }
    const state = (await inbox.events.get(key))?.state
    if (state === undefined) screen.note(`no event has the key ${shellQuoted(key)}: ${whyUnknown(inbox.events.states)}`)
    else if (target.kind !== 'postgres' && (state === 'waiting' || state === 'running'))
      screen.note(
        'with SQLite or Redis, only the process that runs a handler can stop it: use its dashboard, or ' +
          'receiver.inbox.events.stop(key)',
      )
    else screen.note(`no handler runs for ${shellQuoted(key)}; its state: ${stateWords[state]}`)
    return 1
  },
}
