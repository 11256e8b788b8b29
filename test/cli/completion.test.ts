import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { commands } from '../../src/cli/commands/index.ts'
import type { Command } from '../../src/cli/shared/command.ts'
import { flagName } from '../../src/cli/shared/flags.ts'
import { eventTypes } from '../../src/index.ts'
import { canTest } from '../support/can-test.ts'
import { runs } from '../support/runs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { finish } from './program.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

const scriptFor = async (shell: Shell): Promise<string> => (await finish(['completion', shell])).output

/** Runs a program in a shell, after the script, in an empty folder. Returns the lines that it prints. */
async function linesIn(shell: Shell, program: string, before = ''): Promise<string[]> {
  const cwd = await temporaryFolder()
  await writeFile(`${cwd}/script`, [before, await scriptFor(shell), program].join('\n'))
  const options = { cwd, encoding: 'utf8', env: { PATH: process.env['PATH'], HOME: cwd } } as const
  return execFileSync(shell, ['./script'], options).split('\n').filter(Boolean)
}

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ')

/** Lists the words that a shell offers for the last of some words after the name of the program. */
const offeredBy: Record<Shell, (words: readonly string[]) => Promise<string[]>> = {
  bash: (words) =>
    linesIn(
      'bash',
      `COMP_WORDS=(media-webhooks ${quoted(words)}) COMP_CWORD=${words.length}
       _media_webhooks; printf '%s\\n' "\${COMPREPLY[@]}"`,
    ),
  // The functions of zsh's completion work only in its line editor.
  zsh: async (words) => {
    const program = `words=(media-webhooks ${quoted(words)}) CURRENT=$(( 1 + ${words.length} ))\n_media_webhooks`
    const functions = 'compdef() {}\n_files() {}\ncompadd() { shift; print -l -- "$@" }'
    const offered = await linesIn('zsh', program, functions)
    return offered.filter((word) => word.startsWith(words.at(-1) ?? ''))
  },
  fish: async (words) => {
    const lines = await linesIn('fish', `complete -C ${quoted([`media-webhooks ${words.join(' ')}`])}`)
    return lines.map((line) => line.split('\t', 1)[0] as string).filter((word) => word !== 'script')
  },
}

const everyCommand = commands.flatMap((each): [path: string[], command: Command][] =>
  'commands' in each
    ? each.commands.map((one) => [[each.name, one.name], one])
    : [
        [[each.name], each],
        ...(each.actions ?? []).map((one): [string[], Command] => [[each.name, 'place', one.name], one]),
      ],
)

const flagsOf = (command: Command) => [...Object.keys(command.flags), 'json', 'help'].map(flagName)

const cases: [typed: string[], offered: readonly string[]][] = [
  [[''], [...commands.map(({ name }) => name), 'help']],
  [['e'], ['emulate']],
  [['help', 'in'], ['inbox']],
  [
    ['keys', ''],
    ['list', 'create', 'rename', 'delete'],
  ],
  [['keys', 'delete', '--h'], ['--help']],
  [
    ['keys', 'create', '--type', ''],
    ['full_access', 'only_upload'],
  ],
  [['emulate', '--port', '0', '--profile', 'o'], ['observed']],
  [
    ['trigger', ''],
    ['lifecycle', ...eventTypes],
  ],
  [['inbox', 'events.db', 'dea'], ['dead-letters']],
  // Each action has flags of its own.
  [
    ['inbox', 'events.db', 'replay', '--'],
    ['--target', '--schema', '--queue', '--type', '--all', '--since', '--per-second', '--reason', '--json', '--help'],
  ],
  [['inbox', '--queue', 'q', 'redis://h', 'stats', '--l'], []],
  [
    ['inbox', 'events.db', 'events', '--state', ''],
    ['waiting', 'running', 'retrying', 'dead', 'handled'],
  ],
  [['inbox', 'replay', 'show', '--p'], []],
  [['completion', ''], shells],
  // These can be files.
  [['resend', ''], []],
  [['inbox', ''], []],
  [['listen', '--save', ''], []],
  [['nothing', '-'], []],
]

describe.each(shells)('The script for %s', (shell) => {
  const canRun = canTest(runs(shell), `${shell} does not run here`, 'install it')

  test.skipIf(!canRun).each(cases)('offers for %j the words %j', async (typed, offered) => {
    expect((await offeredBy[shell](typed)).toSorted()).toEqual([...offered].toSorted())
  })
})

describe('The script for bash', () => {
  test('is registered, and leaves the rest to the names of files', async () => {
    expect(await linesIn('bash', 'complete -p media-webhooks')).toEqual([
      'complete -o default -F _media_webhooks media-webhooks',
    ])
  })

  test.each([
    [
      ['emulate', '--profile', '='],
      ['documented', 'observed'],
    ],
    [['emulate', '--profile', '=', 'doc'], ['documented']],
  ])('completes a value after an equals sign, which bash takes apart: %j', async (typed, offered) => {
    expect(await offeredBy.bash(typed)).toEqual(offered)
  })

  test('offers the flags of a command that takes no arguments', async () => {
    expect(await offeredBy.bash(['emulate', ''])).toContain('--time-scale')
  })

  test.each(everyCommand)('offers every flag of %j', async (path, command) => {
    expect(await offeredBy.bash([...path, '--'])).toEqual(flagsOf(command))
  })
})

describe('completion', () => {
  test('prints the script in an object with --json', async () => {
    const { output } = await finish(['completion', 'fish', '--json'])
    expect(JSON.parse(output)).toEqual({ shell: 'fish', script: (await scriptFor('fish')).trimEnd() })
  })

  test('says which shells there are', async () => {
    const { code, errors } = await finish(['completion', 'bsh'])
    expect({ code, errors }).toEqual({
      code: 2,
      errors:
        "media-webhooks: there is no script for 'bsh': pass one of bash, zsh, fish; did you mean 'bash'? " +
        "(see 'media-webhooks completion --help')\n",
    })
  })
})
