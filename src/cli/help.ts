import { commonFlags } from './shared/arguments.ts'
import type { Command, CommandGroup } from './shared/command.ts'
import { type Flag, flagName } from './shared/flags.ts'
import { table } from './shared/text.ts'

/** The name of the program. */
export const program = 'media-webhooks'

const exitCodes = { 0: 'fine', 1: 'it failed', 2: 'the command line makes no sense', 130: 'it was interrupted' }

/** The help of the program, or of a group of commands. */
export function listHelp(path: string, summary: string, commands: readonly (Command | CommandGroup)[]): string {
  return [
    `Usage: ${path} <command> [options]`,
    sentence(summary),
    `Commands:\n${table(
      commands.map(({ name, summary: each }) => [name, each]),
      '  ',
    )}`,
    `'${path} <command> --help' tells more. ${path === program ? "'--version' (-v) prints the version." : ''}`.trimEnd(),
    exitCodeLines(exitCodes),
    environment,
  ].join('\n\n')
}

/** The help of a command. */
export function commandHelp(path: string, command: Command): string {
  const { positionals = [], more, flags, summary, details, json, examples } = command
  const needed = Object.entries(flags).filter(([, { required, env }]) => required && env === undefined)
  const arguments_ = more === undefined ? positionals : [...positionals, more]
  const usage = [path, ...arguments_, ...needed.map(([name, flag]) => flagText(name, flag)), '[options]'].join(' ')
  const rows = Object.entries({ ...flags, ...commonFlags(json) }).map(([name, flag]) => flagRow(name, flag))
  return [
    `Usage: ${usage}`,
    `${sentence(summary)}${details === undefined ? '' : `\n${details}`}`,
    `Options:\n${rows.map(([left, right]) => optionLines(left, right)).join('\n')}`,
    exitCodeLines({ ...exitCodes, ...command.exitCodes }),
    `${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((each) => `  ${program} ${each}`).join('\n')}`,
  ].join('\n\n')
}

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}.`

const environment = `Environment:
  NO_COLOR  no colours, which are for terminals only
Results go to the standard output, everything else to the standard error. Secrets that were given are never printed.`

function exitCodeLines(codes: Readonly<Record<number, string | undefined>>): string {
  const rows = Object.entries(codes).flatMap(([code, means]) => (means === undefined ? [] : [[code, means]]))
  return `Exit codes:\n${table(rows, '  ')}`
}

const flagText = (name: string, { takes }: Flag): string =>
  takes === undefined ? flagName(name) : `${flagName(name)} ${takes}`

const flagRow = (name: string, flag: Flag): [string, string] => [
  flagText(name, flag),
  `${flag.help}${flag.env === undefined ? '' : ` (or ${flag.env})`}`,
]

const column = 30

/** What a flag is for stands beside it, or below where it is long. */
function optionLines(left: string, right: string): string {
  const lines = wrap(right, 120 - column)
  const first = left.length + 4 > column ? [`  ${left}`] : [`  ${left}`.padEnd(column) + lines.shift()]
  return [...first, ...lines.map((line) => ' '.repeat(column) + line)].join('\n')
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length + 1 > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}
