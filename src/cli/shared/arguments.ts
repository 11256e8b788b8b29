import { parseArgs } from 'node:util'
import type { Command, Input } from './command.ts'
import { type Flag, type Flags, flagName, toggle, UsageError } from './flags.ts'
import { suggestion } from './suggestion.ts'

/** The flags of every command. */
export const commonFlags = (json: string) => ({ json: toggle(json), help: toggle('print this') })

/**
 * Reads the command line of a command.
 * @throws UsageError that names the flag or argument at fault, and never a value
 */
export function readArguments(
  command: Command,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Input {
  const flags: Flags = { ...command.flags, ...commonFlags('') }
  const { texts, positionals } = split(flags, args)
  const values: Record<string, unknown> = {}
  for (const [name, flag] of Object.entries(flags)) values[name] = readValue(name, flag, texts.get(name), env)
  checkPositionals(command, positionals)
  return { values: values as Input['values'], given: new Set(texts.keys()), positionals }
}

/** Whether the user asks for help rather than for the command. */
export const asksForHelp = (args: readonly string[]): boolean => {
  const end = args.indexOf('--')
  return (end === -1 ? args : args.slice(0, end)).some((each) => each === '--help' || each === '-h')
}

function split(flags: Flags, args: readonly string[]) {
  const byName = new Map(Object.keys(flags).map((name) => [flagName(name), name]))
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { takes }]) => [
      flagName(name).slice(2),
      { type: takes === undefined ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  // Not strict: the parser's own messages know nothing of what a flag takes.
  const { tokens, positionals } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  const texts = new Map<string, string>()
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const name = byName.get(token.rawName)
    if (name === undefined) throw unknownFlag(token.rawName, [...byName.keys()])
    texts.set(name, textOf(flags[name] as Flag, token))
  }
  return { texts, positionals }
}

const unknownFlag = (given: string, names: readonly string[]): UsageError =>
  new UsageError(`there is no flag ${given}${suggestion(given, names)}`)

function textOf({ takes }: Flag, { rawName, value, inlineValue }: GivenFlag): string {
  if (takes === undefined) {
    if (value === undefined) return ''
    throw new UsageError(`${rawName} takes no value`)
  }
  if (value === undefined) throw new UsageError(`${rawName} takes ${takes}`)
  if (!inlineValue && value.startsWith('-')) {
    throw new UsageError(`${rawName} takes ${takes}; one that begins with a dash is written ${rawName}=-…`)
  }
  return value
}

interface GivenFlag {
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

function readValue(
  name: string,
  flag: Flag,
  text: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
) {
  // A variable that is set to nothing is one that is not set.
  const fromEnvironment = flag.env === undefined ? undefined : env[flag.env] || undefined
  const source = text === undefined && fromEnvironment !== undefined ? flag.env : flagName(name)
  const given = text ?? fromEnvironment
  if (given === undefined) {
    if (flag.required !== true) return undefined
    throw new UsageError(`${source} ${flag.takes} is missing${flag.env === undefined ? '' : ` (or ${flag.env})`}`)
  }
  try {
    return flag.read(given)
  } catch (error) {
    throw error instanceof UsageError ? new UsageError(`${source} ${error.message}`) : error
  }
}

function checkPositionals({ positionals: names = [], more }: Command, given: readonly string[]): void {
  const missing = names[given.length]
  if (missing !== undefined) throw new UsageError(`${missing} is missing`)
  if (given.length <= names.length || more !== undefined) return
  // Not quoted: it may be the rest of a secret.
  const taken = names.length === 0 ? 'none' : names.join(' ')
  throw new UsageError(`there is an argument too many: it takes ${taken} (a text with spaces has to be quoted)`)
}
