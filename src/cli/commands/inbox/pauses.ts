import { knownHandlers } from '../../../inbox/operations/paused.ts'
import type { Pause } from '../../../inbox/reading.ts'
import { suggestion } from '../../../internal/suggestion.ts'
import { UsageError } from '../../shared/flags.ts'
import { plain, shellQuoted } from '../../shared/text.ts'
import type { InboxAction } from './action.ts'
import { commandLine } from './command-line.ts'
import { recordOperation, userName } from './record-operation.ts'
import { time } from './times.ts'

const nameOf = ({ handler }: Pick<Pause, 'handler'>): string =>
  handler === undefined ? 'the inbox' : `the handler ${plain(handler)}`

export const pauseText = ({ since, by, ...pause }: Pause): string =>
  `${nameOf(pause)} since ${time(since)}${by === undefined ? '' : `, by ${plain(by)}`}`

export const pause: InboxAction = {
  help: ['pause', 'pauses the inbox on every server until resume; with --handler, only that handler'],
  flags: ['handler', 'reason', 'yes'],
  async run(context) {
    const { inbox, target, values, screen } = context
    const { handler, json, yes } = values
    const known = handler === undefined ? [] : await knownHandlers(inbox)
    const isKnown = handler === undefined || known.includes(handler)
    if (!isKnown && !yes)
      throw new UsageError(
        `no event names a handler ${plain(handler)}${suggestion(handler, known)}: add --yes to pause it anyway`,
      )
    const isNew = await inbox.pauses.pause({ handler, by: userName() })
    if (isNew) await recordOperation(context, { act: 'pause', handler })
    if (json) screen.json({ changed: isNew, ...(!isKnown && { known: false }) })
    else {
      const flag = handler === undefined ? '' : ` ${shellQuoted(`--handler=${handler}`)}`
      const state = isNew ? 'is paused: servers obey within two seconds' : 'was paused already'
      const note = isKnown ? '' : ', although no event names it,'
      screen.print(`${nameOf({ handler })}${note} ${state}\nTo resume it: ${commandLine(target, 'resume')}${flag}`)
    }
    return 0
  },
}

export const resume: InboxAction = {
  help: ['resume', 'resumes the inbox, or one handler with --handler'],
  flags: ['handler', 'reason'],
  async run(context) {
    const { handler, json } = context.values
    const wasPaused = await context.inbox.pauses.resume({ handler })
    if (wasPaused) await recordOperation(context, { act: 'resume', handler })
    if (json) context.screen.json({ changed: wasPaused })
    else context.screen.print(`${nameOf({ handler })} ${wasPaused ? 'is resumed' : 'was not paused'}`)
    return 0
  },
}
