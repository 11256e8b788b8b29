import { parseArgs } from 'node:util'
import { suggestion } from '../../internal/suggestion.ts'
import type { Command, CommandInput } from './command.ts'
import { type Flag, type Flags, flagName, toggle, UsageError } from './flags.ts'
import type { ProgramContext } from './screen.ts'
import { readLine, readText } from './stdin.ts'

export const commonFlags = (json: string) => ({ json: toggle(json), help: toggle('print this help') })

/** @throws UsageError that names the flag or argument but not its value */
export async function readArguments(
  command: Command,
  args: readonly string[],
  context: ProgramContext,
): Promise<CommandInput> {
  const flags: Flags = { ...command.flags, ...commonFlags('') }
  const { texts, positionals: given } = split(flags, args)
  const { positionalFlag: bare } = command
  const positionals = bare === undefined || texts.has(bare) ? given : given.slice(1)
  const [first] = given
  if (bare !== undefined && positionals !== given && first !== undefined) texts.set(bare, first)
  checkPositionals(command, positionals, texts)
  const values: Record<string, unknown> = {}
  for (const [name, flag] of Object.entries(flags)) {
    const label = name === bare ? (flag.takes as string) : flagName(name)
    values[name] = await readValue({ label, flag, text: texts.get(name) }, context)
  }
  return { values: values as CommandInput['values'], given: new Set(texts.keys()), positionals }
}

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
  // Not strict: parseArgs's own errors can't say what a flag takes.
  const { tokens, positionals } = parseArgs({ args: [...args], options, strict: false, tokens: true })
  const texts = new Map<string, string>()
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const name = byName.get(token.rawName)
    if (name === undefined) throw unknownFlag(token.rawName, [...byName.keys()])
    texts.set(name, readFlagText(flags[name] as Flag, token))
  }
  return { texts, positionals }
}

const unknownFlag = (given: string, names: readonly string[]): UsageError =>
  new UsageError(`there is no flag ${given}${suggestion(given, names)}`)

function readFlagText({ takes, stdin }: Flag, { rawName, value, inlineValue }: GivenFlag): string {
  if (takes === undefined) {
    if (value === undefined) return ''
    throw new UsageError(`${rawName} takes no value`)
  }
  if (value === undefined) throw new UsageError(`${rawName} takes ${takes}`)
  if (!inlineValue && value.startsWith('-') && !(stdin && value === '-')) {
    throw new UsageError(`${rawName} takes ${takes}; write a value that begins with a dash as ${rawName}=-…`)
  }
  return value
}

interface GivenFlag {
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

interface GivenValue {
  readonly label: string
  readonly flag: Flag
  readonly text: string | undefined
}

async function readValue({ label, flag, text }: GivenValue, context: ProgramContext): Promise<unknown> {
  // An empty variable counts as unset.
  const fromEnvironment = flag.env === undefined ? undefined : context.env[flag.env] || undefined
  const source = text === undefined && fromEnvironment !== undefined ? flag.env : label
  const given = text ?? fromEnvironment
  if (given === undefined) {
    if (flag.required !== true) return undefined
    const name = label === flag.takes ? label : `${label} ${flag.takes}`
    throw new UsageError(`${name} is missing${flag.env === undefined ? '' : ` (or ${flag.env})`}`)
  }
  try {
    if (flag.file) return flag.read(await readText(given, context))
    return flag.read(flag.stdin && text === '-' ? await readLine(context) : given)
  } catch (error) {
    throw error instanceof UsageError ? new UsageError(`${source} ${error.message}`) : error
  }
}

function checkPositionals(command: Command, given: readonly string[], texts: ReadonlyMap<string, string>): void {
  const { positionals: names = [], morePositionals, positionalFlag, flags } = command
  const first = positionalFlag === undefined ? undefined : flags[positionalFlag]
  if (first?.required && first.env === undefined && !texts.has(positionalFlag as string))
    throw new UsageError(`${first.takes} is missing`)
  const missing = names[given.length]
  if (missing !== undefined) throw new UsageError(`${missing} is missing`)
  if (given.length <= names.length || morePositionals !== undefined) return
  // Never quote the argument: it may be the rest of a secret.
  const bare = positionalFlag === undefined ? undefined : flags[positionalFlag]?.takes
  const taken = [...(bare === undefined ? [] : [bare]), ...names].join(' ') || 'none'
  throw new UsageError(`too many arguments: the command takes ${taken} (put quotes around a text with spaces)`)
}
