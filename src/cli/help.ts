import { commonFlags } from './shared/arguments.ts'
import type { Command, CommandGroup } from './shared/command.ts'
import { type Flag, flagName } from './shared/flags.ts'
import { table } from './shared/text.ts'

export const program = 'media-webhooks'

/** How a printed command begins. It can be pasted where the package is a dependency, too. */
export const pasted = `npx ${program}`

const exitCodes = { 0: 'success', 1: 'failure', 2: 'invalid command line', 130: 'interrupted' }

export function listHelp(path: string, summary: string, commands: readonly (Command | CommandGroup)[]): string {
  return [
    `Usage: ${path} <command> [options]`,
    sentence(summary),
    `Commands:\n${table(
      commands.map(({ name, summary: each }) => [name, each]),
      '  ',
    )}`,
    `Run 'npx ${path} <command> --help' for details.${path === program ? " '--version' (-v) prints the version." : ''}`,
    exitCodeLines(exitCodes),
    environment,
  ].join('\n\n')
}

export function commandHelp(path: string, command: Command): string {
  const { positionals: named = [], morePositionals, positionalFlag, flags, summary, details, json, examples } = command
  const bare = positionalFlag === undefined ? undefined : flags[positionalFlag]?.takes
  const positionals = bare === undefined ? named : [bare, ...named]
  const needed = Object.entries(flags).filter(
    ([name, { required, env }]) => required && env === undefined && name !== positionalFlag,
  )
  const arguments_ = morePositionals === undefined ? positionals : [...positionals, morePositionals]
  const usage = [path, ...arguments_, ...needed.map(([name, flag]) => flagText(name, flag)), '[options]'].join(' ')
  const rows = Object.entries({ ...flags, ...commonFlags(json) }).map(([name, flag]) => flagRow(name, flag))
  return [
    `Usage: ${usage}`,
    `${sentence(summary)}${details === undefined ? '' : `\n${details}`}`,
    `Options:\n${rows.map(([left, right]) => optionLines(left, right)).join('\n')}`,
    exitCodeLines({ ...exitCodes, ...command.exitCodes }),
    ...(examples.length === 0 ? [] : [exampleLines(examples)]),
  ].join('\n\n')
}

const exampleLines = (examples: readonly string[]): string =>
  `${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((each) => `  ${pasted} ${each}`).join('\n')}`

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}.`

const environment = `Environment:
  NO_COLOR  turns colours off; only terminals get colours
Results go to standard output, everything else to standard error. Secrets that you pass are never printed.`

function exitCodeLines(codes: Readonly<Record<number, string | undefined>>): string {
  const rows = Object.entries(codes).flatMap(([code, means]) => (means === undefined ? [] : [[code, means]]))
  return `Exit codes:\n${table(rows, '  ')}`
}

const flagText = (name: string, { takes }: Flag): string =>
  takes === undefined ? flagName(name) : `${flagName(name)} ${takes}`

const flagRow = (name: string, flag: Flag): [string, string] => [
  flagText(name, flag),
  `${flag.help}${orElsewhere(flag)}`,
]

function orElsewhere({ env, stdin }: Flag): string {
  const places = [env, stdin && '- for standard input'].filter((place) => place !== undefined)
  return places.length === 0 ? '' : ` (or ${places.join(', or ')})`
}

const column = 30

/** Puts the description beside the flag, or below a long one. */
const optionLines = (left: string, right: string): string =>
  left.length + 4 > column ? `  ${left}\n${' '.repeat(column)}${right}` : `  ${left}`.padEnd(column) + right
