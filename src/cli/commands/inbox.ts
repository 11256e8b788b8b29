import type { InboxFile } from '../../inbox/sqlite.ts'
import { WebhookError } from '../../index.ts'
import { type CommandInput, defineCommand } from '../shared/command.ts'
import { flagName, toggle, UsageError, wholeNumber } from '../shared/flags.ts'
import type { Screen } from '../shared/screen.ts'
import { suggestion } from '../shared/suggestion.ts'
import { table } from '../shared/text.ts'
import { eachDeadLetter, everyKey } from './inbox/each-dead-letter.ts'
import { deadLetterJson, deadLettersText, shellQuoted } from './inbox/print.ts'

const flags = {
  limit: wholeNumber('<n>', 'dead-letters: list at most this many, newest first (default: 100)', 1),
  offset: wholeNumber('<n>', 'dead-letters: skip this many'),
  all: toggle('replay, discard: all dead letters'),
  yes: toggle('discard --all: confirm that they are deleted for good'),
}

type InboxInput = CommandInput<typeof flags>
type Run = (file: InboxFile, input: InboxInput, screen: Screen) => number | Promise<number>

/** One of the words after the file, such as `replay`. */
interface Action {
  /** The flags that it takes. */
  readonly flags: readonly (keyof typeof flags)[]
  readonly run: Run
}

const showStats: Run = (file, { values }, screen) => {
  const stats = file.stats()
  const { waiting, retrying, deadLetters } = stats
  const rows = Object.entries({ waiting, retrying, 'dead letters': deadLetters })
  if (values.json) screen.json(stats)
  else screen.print(table(rows.map(([label, count]) => [label, `${count}`])))
  return 0
}

const showDeadLetters: Run = (file, { values: { limit = 100, offset = 0, json } }, screen) => {
  const deadLetters = file.deadLetters.list({ limit, offset })
  const total = file.stats().deadLetters
  if (json) screen.json({ deadLetters: deadLetters.map(deadLetterJson), total })
  else {
    if (deadLetters.length > 0) screen.print(deadLettersText(deadLetters, screen.paint))
    screen.print(`${deadLetters.length} of ${counted(total)}`)
  }
  return 0
}

const settle =
  (action: 'replay' | 'discard', past: 'replayed' | 'discarded', then = ''): Run =>
  async (file, { values: { all, json }, positionals: [, , ...named] }, screen) => {
    const keys = all ? everyKey(file) : [...new Set(named)]
    const { done, missing } = await eachDeadLetter(file, keys, (key) => file.deadLetters[action](key), past, screen)
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
}

export const inbox = defineCommand({
  name: 'inbox',
  summary: 'inspects the file of a SQLite inbox, and replays or discards its dead letters',
  details:
    'It also works while a server has the inbox open. Unreadable deliveries are dead letters too: they passed\n' +
    'verification and could not be parsed. If one still cannot be parsed, a replay keeps it. Put a key that begins with\n' +
    'a dash after --.',
  positionals: ['<file>', `<${Object.keys(actions).join('|')}>`],
  morePositionals: '[key…]',
  flags,
  json: 'print one JSON object: the counts, or complete dead letters and their total, or the keys done and missing',
  exitCodes: { 1: 'no dead letter has one of the keys, or the file cannot be used' },
  examples: [
    'inbox ./inbox.db stats',
    'inbox ./inbox.db dead-letters --limit 10',
    'inbox ./inbox.db replay unreadable:3q2-7w 7c9e6679',
    'inbox ./inbox.db discard --all --yes',
  ],
  async run(input, screen) {
    const { run } = actionOf(input)
    const file = await openFile(input.positionals[0] as string)
    try {
      return await run(file, input, screen)
    } finally {
      file.close()
    }
  },
})

function actionOf({ positionals: [, name = '', ...keys], values, given }: InboxInput): Action {
  const names = Object.keys(actions)
  const action = names.includes(name) ? actions[name] : undefined
  if (action === undefined)
    throw new UsageError(`the word after the file has to be one of ${names.join(', ')}${suggestion(name, names)}`)
  const stray = Object.keys(flags).find((flag) => given.has(flag) && !action.flags.some((each) => each === flag))
  if (stray !== undefined) throw new UsageError(`${name} does not take ${flagName(stray)}`)
  const takesKeys = action.flags.includes('all')
  if (!takesKeys && keys.length > 0) throw new UsageError(`${name} takes no keys`)
  if (takesKeys && keys.length > 0 === (values.all === true)) throw new UsageError(`${name} takes either keys or --all`)
  if (name === 'discard' && values.all && !values.yes)
    throw new UsageError('discard --all deletes all dead letters for good: add --yes to confirm')
  return action
}

async function openFile(path: string): Promise<InboxFile> {
  // Loaded only here: the other commands do not need SQLite.
  const { openInboxFile } = await import('../../inbox/sqlite.ts')
  try {
    return openInboxFile(path)
  } catch (error) {
    // The package calls a wrong path an invalid option. Here the command line is valid, and the file is the problem.
    if (!(error instanceof WebhookError)) throw error
    throw new Error(error.message, { cause: error })
  }
}

const counted = (count: number): string => `${count} dead letter${count === 1 ? '' : 's'}`
