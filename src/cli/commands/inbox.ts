import { keysWithId } from '../../inbox/operations/finding.ts'
import type { InspectedInbox } from '../../inbox/reading.ts'
import { type Command, defineCommand } from '../shared/command.ts'
import { UsageError } from '../shared/flags.ts'
import { shellQuoted } from '../shared/text.ts'
import { actionsHelp, findAction, makeCommands, requireAction } from './inbox/actions.ts'
import { explained } from './inbox/explain.ts'
import { flags } from './inbox/flags.ts'
import { migrateTables } from './inbox/migrate.ts'
import { openTarget, readTarget } from './inbox/target.ts'

/** @throws Error if several events have the given short id */
async function findKey(opened: InspectedInbox, given: string): Promise<string> {
  const keys = await keysWithId(opened, given)
  if (keys.length <= 1) return keys[0] ?? given
  throw new Error(
    `${keys.length} events have the short id ${given}; give the key of one: ${keys.map(shellQuoted).join(' ')}`,
  )
}

const command = defineCommand({
  name: 'inbox',
  summary: 'shows the events of an inbox in SQLite, Postgres or Redis, and replays its dead letters',
  details:
    `\nActions:\n${actionsHelp}\n\n` +
    'With an action, --help prints what it takes.\n' +
    'It is safe to run while servers handle events. Dead letters include unreadable deliveries: verified, but not\n' +
    'parsable. A replay keeps one that still cannot be parsed. For recent events, the short id from the lists and the\n' +
    'page works in place of the key. Put a key that begins with a dash after --.\n' +
    'Other users of this machine can see the command line. If the URL contains a password, pass a dash (-) and write the\n' +
    'URL to standard input. For Postgres you can also leave the password out and set PGPASSWORD.',
  positionalFlag: 'target',
  morePositionals: '<action> [key…]',
  flags,
  json:
    'print one JSON object: the counts, complete events or dead letters, the keys done and missing, or what was ' +
    'migrated; watch prints one for each change',
  exitCodes: { 1: 'nothing has that key or media id, or the inbox cannot be reached' },
  serves: (input) => findAction(input)?.serves === true,
  examples: [
    'inbox ./inbox.db media 7c9e6679-7425-40de-944b-e07fc1f90ae7',
    'inbox ./inbox.db replay unreadable:3q2-7w 7c9e6679',
    'inbox postgres://app@db.example/app events --state retrying --oldest --limit 10',
    'inbox postgres://app@db.example/app replay --all --type encoding.finished --since 2h --per-second 20',
    'inbox postgres://app@db.example/app migrate --print > migration.sql',
    'inbox redis://127.0.0.1:6379 discard --all --yes',
  ],
  async run(input, screen) {
    const { run, takes } = requireAction(input)
    const target = readTarget(input.values.target, input.values)
    if (run === undefined && target.kind !== 'postgres')
      throw new UsageError('migrate is for Postgres only: other inboxes need no migration')
    try {
      if (run === undefined) return await migrateTables(target, input.values, screen)
      const opened = await openTarget(target)
      try {
        const { values, positionals } = input
        const given = positionals.slice(1)
        const areKeys = takes === 'key' || takes === 'keys'
        const words = areKeys ? await Promise.all(given.map((word) => findKey(opened, word))) : given
        return await run({ inbox: opened, target, values, words, screen })
      } finally {
        await opened.close()
      }
    } catch (error) {
      throw explained(error, target)
    }
  },
})

export const inbox: Command = { ...command, actions: makeCommands(command) }
