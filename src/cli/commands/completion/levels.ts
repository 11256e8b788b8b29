import { commonFlags } from '../../shared/arguments.ts'
import type { Command, CommandGroup } from '../../shared/command.ts'
import { type Flag, flagName } from '../../shared/flags.ts'

/** What can follow the program, a group or a command. */
export interface Level {
  /** The words so far, such as `keys create`. */
  readonly path: string
  /** An argument stands before the last word: `inbox <target> replay`. */
  readonly isAction?: true
  /** Words per argument; without words, files. `undefined` if it takes no arguments. */
  readonly arguments: readonly (readonly Word[])[] | undefined
  readonly flags: readonly CompletedFlag[]
}

interface Word {
  readonly word: string
  readonly help?: string
}

interface CompletedFlag extends Word {
  readonly takesValue: boolean
  readonly values: readonly string[]
}

const helpFlag: CompletedFlag = { word: '--help', help: 'print the help', takesValue: false, values: [] }
const versionFlag: CompletedFlag = { word: '--version', help: 'print the version', takesValue: false, values: [] }

export function levelsOf(commands: readonly (Command | CommandGroup)[]): Level[] {
  const names = commands.map(wordOf)
  return [
    {
      path: '',
      arguments: [[...names, { word: 'help', help: 'prints the help of a command' }]],
      flags: [helpFlag, versionFlag],
    },
    { path: 'help', arguments: [names], flags: [] },
    ...commands.flatMap((each) =>
      'commands' in each
        ? [
            { path: each.name, arguments: [each.commands.map(wordOf)], flags: [helpFlag] },
            ...each.commands.map((command) => levelOf(`${each.name} ${command.name}`, command)),
          ]
        : [levelOf(each.name, each), ...actionLevels(each)],
    ),
  ]
}

const wordOf = ({ name, summary }: Command | CommandGroup): Word => ({ word: name, help: summary })

const actionLevels = ({ name, actions = [] }: Command): Level[] =>
  actions.map((action) => ({ ...levelOf(`${name} ${action.name}`, action), isAction: true }))

function levelOf(path: string, command: Command): Level {
  const { positionals, positionalFlag, morePositionals, argumentWords = [], flags, json } = command
  const takesArguments = (positionals ?? positionalFlag ?? morePositionals) !== undefined
  return {
    path,
    arguments: takesArguments ? argumentWords.map((words) => words.map((word) => ({ word }))) : undefined,
    flags: Object.entries({ ...flags, ...commonFlags(json) }).map(([name, flag]) => completedFlag(name, flag)),
  }
}

type Parent = readonly [word: string, children: readonly string[]]

/** Groups and their commands, or commands and their actions. */
export function parentsOf(levels: readonly Level[], ofActions: boolean): Parent[] {
  const pairs = levels.flatMap(({ path, isAction = false }) => {
    const [parent = '', child] = path.split(' ')
    return child === undefined || isAction !== ofActions ? [] : [[parent, child] as const]
  })
  return [...new Set(pairs.map(([parent]) => parent))].map((parent) => [
    parent,
    pairs.flatMap((pair) => (pair[0] === parent ? pair[1] : [])),
  ])
}

const completedFlag = (name: string, { help, takes, words = [] }: Flag): CompletedFlag => ({
  word: flagName(name),
  help,
  takesValue: takes !== undefined,
  values: words,
})
