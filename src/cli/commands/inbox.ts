import type { InboxFile } from '../../inbox/sqlite.ts'
import { WebhookError } from '../../index.ts'
import { defineCommand, type Input } from '../shared/command.ts'
import { flagName, toggle, UsageError, whole } from '../shared/flags.ts'
import type { Screen } from '../shared/screen.ts'
import { suggestion } from '../shared/suggestion.ts'
import { table } from '../shared/text.ts'
import { eachDeadLetter, everyKey } from './inbox/each-dead-letter.ts'
import { deadLetterJson, deadLettersText, shellQuoted } from './inbox/print.ts'

const flags = {
  limit: whole('<n>', 'dead-letters: at most so many, the newest (default: 100)', 1),
  offset: whole('<n>', 'dead-letters: without the first so many'),
  all: toggle('replay, discard: every dead letter'),
  yes: toggle('discard --all: yes, for good'),
}

type InboxInput = Input<typeof flags>
type Run = (file: InboxFile, input: InboxInput, screen: Screen) => number | Promise<number>

interface Action {
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
  const letters = file.deadLetters.list({ limit, offset })
  const total = file.stats().deadLetters
  if (json) screen.json({ deadLetters: letters.map(deadLetterJson), total })
  else {
    if (letters.length > 0) screen.print(deadLettersText(letters, screen.paint))
    screen.print(`${letters.length} of ${counted(total)}`)
  }
  return 0
}

const settle =
  (action: 'replay' | 'discard', past: 'replayed' | 'discarded', then = ''): Run =>
  async (file, { values: { all, json }, positionals: [, , ...named] }, screen) => {
    const keys = all ? everyKey(file) : [...new Set(named)]
    const { done, missing } = await eachDeadLetter(keys, (key) => file.deadLetters[action](key), past, screen)
    // With --all they were there a moment ago: somebody else was faster.
    const unknown = all ? [] : missing
    if (json) screen.json({ [past]: done, missing: unknown })
    else screen.print(`${counted(done.length)} ${past}${done.length > 0 ? then : ''}`)
    for (const key of unknown) screen.note(`no dead letter has the key ${shellQuoted(key)}`)
    return unknown.length === 0 ? 0 : 1
  }

const replayed =
  ': handled within a second by the server that has the inbox open, or by the next that opens it.\nA refused delivery that still cannot be read stays; the log of that server says why'

const actions: Readonly<Record<string, Action>> = {
  stats: { flags: [], run: showStats },
  'dead-letters': { flags: ['limit', 'offset'], run: showDeadLetters },
  replay: { flags: ['all'], run: settle('replay', 'replayed', replayed) },
  discard: { flags: ['all', 'yes'], run: settle('discard', 'discarded') },
}

export const inbox = defineCommand({
  name: 'inbox',
  summary: 'looks into the file of a SQLite inbox, and replays or discards its dead letters',
  details:
    'Whether a server has the inbox open or not. Refused deliveries are listed too: they passed verification and could\n' +
    'not be read. One that still cannot be read when it is replayed stays. A key that begins with a dash comes after --.',
  positionals: ['<file>', `<${Object.keys(actions).join('|')}>`],
  more: '[key…]',
  flags,
  json: 'print one JSON object: the counts; the dead letters whole, and total; or the keys, and those that are missing',
  exitCodes: { 1: 'a key is not there, or the file cannot be used' },
  examples: [
    'inbox ./inbox.db stats',
    'inbox ./inbox.db dead-letters --limit 10',
    'inbox ./inbox.db replay refused:3q2-7w 7c9e6679',
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
    throw new UsageError(`after the file comes one of ${names.join(', ')}${suggestion(name, names)}`)
  const stray = Object.keys(flags).find((flag) => given.has(flag) && !action.flags.some((each) => each === flag))
  if (stray !== undefined) throw new UsageError(`${name} has no use for ${flagName(stray)}`)
  const takesKeys = action.flags.includes('all')
  if (!takesKeys && keys.length > 0) throw new UsageError(`${name} takes no keys`)
  if (takesKeys && keys.length > 0 === (values.all === true)) throw new UsageError(`${name} takes keys, or --all`)
  if (name === 'discard' && values.all && !values.yes)
    throw new UsageError('discard --all forgets every dead letter for good: add --yes if that is meant')
  return action
}

async function openFile(path: string): Promise<InboxFile> {
  // Only here: the other commands do without SQLite.
  const { openInboxFile } = await import('../../inbox/sqlite.ts')
  try {
    return openInboxFile(path)
  } catch (error) {
    // To the package the path is an option. Here the command line makes sense, and the file is not there.
    if (!(error instanceof WebhookError)) throw error
    throw new Error(error.message, { cause: error })
  }
}

const counted = (count: number): string => `${count} dead letter${count === 1 ? '' : 's'}`
