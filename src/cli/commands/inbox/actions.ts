import { suggestion } from '../../../internal/suggestion.ts'
import type { Command } from '../../shared/command.ts'
import { flagName, UsageError } from '../../shared/flags.ts'
import { table } from '../../shared/text.ts'
import type { InboxAction } from './action.ts'
import { deadLetters } from './dead-letters.ts'
import { events } from './events.ts'
import { expected } from './expected.ts'
import { actionFlags, type InboxInput } from './flags.ts'
import { media } from './media.ts'
import { pause, resume } from './pauses.ts'
import { checkDeadLetterArguments, discard, replay } from './replay-discard.ts'
import { retry } from './retry.ts'
import { serve } from './serve.ts'
import { show } from './show.ts'
import { stats } from './stats.ts'
import { stop } from './stop.ts'
import { watch } from './watch.ts'

const migrate: InboxAction = {
  help: ['migrate', 'creates the tables in Postgres, as a server does when it starts'],
  flags: ['print'],
}

/** In the order of the help. */
const actions: Readonly<Record<string, InboxAction>> = {
  stats,
  media,
  show,
  events,
  'dead-letters': deadLetters,
  expected,
  replay,
  discard,
  retry,
  stop,
  pause,
  resume,
  watch,
  serve,
  migrate,
}

const actionNames = Object.keys(actions)

export const actionsHelp = table(
  Object.values(actions).map(({ help }) => help),
  '  ',
)

/** `inbox` once per action, with the action's arguments and flags. */
export const makeCommands = ({ details: _, morePositionals: __, ...inbox }: Command): Command[] =>
  Object.entries(actions).map(
    ([
      name,
      {
        help: [usage, what],
        flags,
      },
    ]) => ({
      ...inbox,
      name,
      summary: what,
      positionals: [usage],
      flags: Object.fromEntries(
        Object.entries(inbox.flags).filter(
          ([flag]) => !Object.hasOwn(actionFlags, flag) || flags.some((each) => each === flag),
        ),
      ),
      examples: inbox.examples.filter((example) => example.split(' ').includes(name)),
    }),
  )

export const findAction = ({ positionals: [name = ''] }: Pick<InboxInput, 'positionals'>): InboxAction | undefined =>
  Object.hasOwn(actions, name) ? actions[name] : undefined

/** @throws UsageError for an unknown action, or flags and words it does not take */
export function requireAction(input: InboxInput): InboxAction {
  const [name = '', ...words] = input.positionals
  const action = findAction(input)
  if (action === undefined)
    throw new UsageError(
      `the word after the target must be one of ${actionNames.join(', ')}${suggestion(name, actionNames)}`,
    )
  const stray = Object.keys(actionFlags).find(
    (flag) => input.given.has(flag) && !action.flags.some((each) => each === flag),
  )
  if (stray !== undefined) throw new UsageError(`${name} does not take ${flagName(stray)}`)
  if (action.takes === 'keys') checkDeadLetterArguments(name, words, input.values)
  else if (action.takes === undefined && words.length > 0) throw new UsageError(`${name} takes no keys`)
  else if (action.takes !== undefined && words.length !== 1)
    throw new UsageError(`${name} takes one ${action.takes === 'id' ? 'media id' : 'key'}`)
  return action
}
