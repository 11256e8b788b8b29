import manifest from '../../package.json' with { type: 'json' }
import { WebhookError } from '../errors.ts'
import { withRefusedHint } from '../internal/refused.ts'
import { suggestion } from '../internal/suggestion.ts'
import { ApiError } from '../service/client/index.ts'
import { commands } from './commands/index.ts'
import { commandHelp, listHelp, program } from './help.ts'
import { asksForHelp, readArguments } from './shared/arguments.ts'
import type { Command, CommandGroup } from './shared/command.ts'
import { fit } from './shared/fit.ts'
import { flagName, UsageError } from './shared/flags.ts'
import { createScreen, type ProgramContext, type Screen } from './shared/screen.ts'
import { plain } from './shared/text.ts'

const summary = "tools to develop and operate receivers of a media service's webhooks"

/** Prints errors instead of throwing them. @returns the exit code */
export async function run(args: readonly string[], context: ProgramContext): Promise<number> {
  const screen = createScreen(context)
  try {
    if (args[0] === '--version' || args[0] === '-v') {
      screen.print(manifest.version)
      return 0
    }
    return await runCommand({ path: program, summary, commands }, args, context, screen)
  } catch (error) {
    if (context.signal.aborted) return 130
    screen.note(`${program}: ${withRefusedHint(messageOf(error))}`)
    return error instanceof UsageError ? 2 : 1
  }
}

interface CommandLevel {
  readonly path: string
  readonly summary: string
  readonly commands: readonly (Command | CommandGroup)[]
}

async function runCommand(
  { path, summary, commands }: CommandLevel,
  [name, ...rest]: readonly string[],
  context: ProgramContext,
  screen: Screen,
): Promise<number> {
  if (name === '--help' || name === '-h') {
    screen.print(fit(listHelp(path, summary, commands), widthOf(context)))
    return 0
  }
  if (name === undefined) {
    screen.note(fit(listHelp(path, summary, commands), widthOf(context)))
    return 2
  }
  if (name === 'help') return runCommand({ path, summary, commands }, [...rest, '--help'], context, screen)
  const chosen = commands.find((each) => each.name === name)
  if (chosen === undefined) throw unknownCommand(path, name, commands)
  const chosenPath = `${path} ${name}`
  if ('commands' in chosen) return runCommand({ ...chosen, path: chosenPath }, rest, context, screen)
  if (asksForHelp(rest)) {
    screen.print(fit(commandHelp(chosenPath, actionIn(rest, chosen) ?? chosen), widthOf(context)))
    return 0
  }
  try {
    const input = await readArguments(chosen, rest, context)
    const serves = typeof chosen.serves === 'function' ? chosen.serves(input) : chosen.serves
    return await chosen.run(input, serves ? endingWithOutput(screen, context) : screen)
  } catch (error) {
    if (!isWrongUsage(error)) throw error
    const action = actionIn(rest, chosen)
    throw new UsageError(
      `${inFlags(error.message, chosen)}${helpHint(action === undefined ? chosenPath : `${chosenPath} ${action.name}`)}`,
      { cause: error },
    )
  }
}

const actionIn = (args: readonly string[], { actions }: Command): Command | undefined =>
  actions?.find(({ name }) => args.includes(name))

/** Terminal width, between 60 and 100 columns. */
const widthOf = ({ stdout: { columns = 100 } }: ProgramContext): number => Math.min(Math.max(columns, 60), 100)

/** Adds to the signal: it also aborts when the reader of the output is gone. */
const endingWithOutput = (screen: Screen, { signal, outputClosed }: ProgramContext): Screen => ({
  ...screen,
  signal: outputClosed === undefined ? signal : AbortSignal.any([signal, outputClosed]),
})

function unknownCommand(path: string, name: string, commands: CommandLevel['commands']): UsageError {
  const names = commands.map((each) => each.name)
  if (name.startsWith('-')) return new UsageError(`flags come after the command${helpHint(path)}`)
  const meant = commands.find((each) => 'suggestedFor' in each && each.suggestedFor === name)
  const hint = meant === undefined ? suggestion(name, names) : `; did you mean '${meant.name}'?`
  return new UsageError(`there is no command '${name}'${hint}${helpHint(path)}`)
}

const helpHint = (path: string): string => ` (see 'npx ${path} --help')`

const isWrongUsage = (error: unknown): error is Error =>
  error instanceof UsageError ||
  (error instanceof WebhookError && error.code === 'invalid_option') ||
  (error instanceof ApiError && error.code === 'invalid_params')

/** On one line, safe for a terminal. */
const messageOf = (error: unknown): string =>
  plain((error instanceof Error ? error.message || error.name : String(error)).replace(/\s*\n\s*/g, ' '))

/** Turns `createClient: baseUrl must be …` into `--base-url must be …`. */
function inFlags(message: string, { flags }: Command): string {
  const [, parameter = '', rest] =
    /^(?:createClient|createEmulator|(?:apiKey|webhook)\.\w+): (\w+) (.*)$/s.exec(message) ?? []
  const name = parameter === 'apiKeyName' ? 'name' : parameter
  return Object.hasOwn(flags, name) ? `${flagName(name)} ${rest}` : message
}
