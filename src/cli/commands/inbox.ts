import { type CommandInput, defineCommand } from '../shared/command.ts'
import { flagName, toggle, UsageError, wholeNumber } from '../shared/flags.ts'
import type { Screen } from '../shared/screen.ts'
import { suggestion } from '../shared/suggestion.ts'
import { table } from '../shared/text.ts'
import { eachDeadLetter } from './inbox/each-dead-letter.ts'
import { explained } from './inbox/explain.ts'
import { migrateTables } from './inbox/migrate.ts'
import { deadLetterJson, deadLettersText, shellQuoted } from './inbox/print.ts'
import { type OpenedInbox, openTarget, placeFlags, readTarget, targetFlag } from './inbox/target.ts'

const actionFlags = {
  limit: wholeNumber('<n>', 'dead-letters: list at most this many, newest first (default: 100)', 1),
  offset: wholeNumber('<n>', 'dead-letters: skip this many'),
  all: toggle('replay, discard: all dead letters'),
  yes: toggle('discard --all: confirm that they are deleted for good'),
  print: toggle('migrate: print the SQL, and change nothing'),
}
const flags = { target: targetFlag, ...placeFlags, ...actionFlags }

type InboxInput = CommandInput<typeof flags>
type Run = (inbox: OpenedInbox, input: InboxInput, screen: Screen) => number | Promise<number>

/** One of the words after the target, such as `replay`. */
interface Action {
  /** The flags that it takes. */
  readonly flags: readonly (keyof typeof actionFlags)[]
  /** Absent for the one that opens no inbox: `migrate`. */
  readonly run?: Run
}

const showStats: Run = async (inbox, { values }, screen) => {
  const stats = await inbox.stats()
  const { waiting, running, retrying, deadLetters } = stats
  const rows = Object.entries({
    waiting,
    ...(running !== undefined && { running }),
    retrying,
    'dead letters': deadLetters,
  })
  if (values.json) screen.json(stats)
  else screen.print(table(rows.map(([label, count]) => [label, `${count}`])))
  return 0
}

const showDeadLetters: Run = async (inbox, { values: { limit = 100, offset = 0, json } }, screen) => {
  const deadLetters = await inbox.list({ limit, offset })
  const { deadLetters: total } = await inbox.stats()
  if (json) screen.json({ deadLetters: deadLetters.map(deadLetterJson), total })
  else {
    if (deadLetters.length > 0) screen.print(deadLettersText(deadLetters, screen.paint))
    screen.print(`${deadLetters.length} of ${counted(total)}`)
  }
  return 0
}

const settle =
  (action: 'replay' | 'discard', past: 'replayed' | 'discarded', then = ''): Run =>
  async (inbox, { values: { all, json }, positionals: [, ...named] }, screen) => {
    const keys = all ? await inbox.keys() : [...new Set(named)]
    const { done, missing } = await eachDeadLetter(keys, inbox[action], past, screen)
    // With --all, a missing key is not an error: someone else has just replayed or discarded it.
    const unknown = all ? [] : missing
    if (json) screen.json({ [past]: done, missing: unknown })
    else screen.print(`${counted(done.length)} ${past}${done.length > 0 ? then : ''}`)
    for (const key of unknown) screen.note(`no dead letter has the key ${shellQuoted(key)}`)
    return unknown.length === 0 ? 0 : 1
  }

const replayed =
  ': handled within a second by the server that has the inbox open, or else by the next one that opens it.\n' +
  'An unreadable delivery that still cannot be parsed stays. The log of that server says why.'

const actions: Readonly<Record<string, Action>> = {
  stats: { flags: [], run: showStats },
  'dead-letters': { flags: ['limit', 'offset'], run: showDeadLetters },
  replay: { flags: ['all'], run: settle('replay', 'replayed', replayed) },
  discard: { flags: ['all', 'yes'], run: settle('discard', 'discarded') },
  migrate: { flags: ['print'] },
}

export const inbox = defineCommand({
  name: 'inbox',
  summary: 'inspects an inbox in SQLite, Postgres or Redis, and replays or discards its dead letters',
  details:
    'It also works while servers handle the events. Unreadable deliveries are dead letters too: they passed\n' +
    'verification and could not be parsed. If one still cannot be parsed, a replay keeps it. Put a key that begins with\n' +
    'a dash after --. migrate makes the tables in Postgres, as a server that starts does.\n' +
    'Other users of this machine can see the command line. If the URL contains a password, give a dash (-) in its place\n' +
    'and write the URL to standard input. For Postgres you can also leave the password out, and set PGPASSWORD.',
  positionalFlag: 'target',
  positionals: [`<${Object.keys(actions).join('|')}>`],
  morePositionals: '[key…]',
  flags,
  json:
    'print one JSON object: the counts, or complete dead letters and their total, or the keys done and missing, or ' +
    'what was migrated',
  exitCodes: { 1: 'no dead letter has one of the keys, or the inbox cannot be used' },
  examples: [
    'inbox ./inbox.db stats',
    'inbox ./inbox.db replay unreadable:3q2-7w 7c9e6679',
    'inbox postgres://app@db.example/app dead-letters --limit 10',
    'inbox postgres://app@db.example/app migrate --print > migration.sql',
    'inbox redis://127.0.0.1:6379 discard --all --yes',
  ],
  async run(input, screen) {
    const { run } = actionOf(input)
    const target = readTarget(input.values.target, input.values)
    if (run === undefined && target.kind !== 'postgres')
      throw new UsageError('migrate is for Postgres only: other inboxes need no migration')
    try {
      if (run === undefined) return await migrateTables(target, input.values, screen)
      const opened = await openTarget(target)
      try {
        return await run(opened, input, screen)
      } finally {
        await opened.close()
      }
    } catch (error) {
      throw explained(error, target)
    }
  },
})

function actionOf({ positionals: [name = '', ...keys], values, given }: InboxInput): Action {
  const names = Object.keys(actions)
  const action = names.includes(name) ? actions[name] : undefined
  if (action === undefined)
    throw new UsageError(`the word after the target has to be one of ${names.join(', ')}${suggestion(name, names)}`)
  const stray = Object.keys(actionFlags).find((flag) => given.has(flag) && !action.flags.some((each) => each === flag))
  if (stray !== undefined) throw new UsageError(`${name} does not take ${flagName(stray)}`)
  const takesKeys = action.flags.includes('all')
  if (!takesKeys && keys.length > 0) throw new UsageError(`${name} takes no keys`)
  if (takesKeys && keys.length > 0 === (values.all === true)) throw new UsageError(`${name} takes either keys or --all`)
  if (name === 'discard' && values.all && !values.yes)
    throw new UsageError('discard --all deletes all dead letters for good: add --yes to confirm')
  return action
}

const counted = (count: number): string => `${count} dead letter${count === 1 ? '' : 's'}`
