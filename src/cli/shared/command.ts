import type { Flags, Values } from './flags.ts'
import type { Screen } from './screen.ts'

/** What a command was given. */
export interface Input<Of extends Flags = Flags> {
  readonly values: Values<Of> & { readonly json: true | undefined }
  /** The flags that were on the command line itself, not those taken from the environment. */
  readonly given: ReadonlySet<string>
  readonly positionals: readonly string[]
}

/** A command of the program. */
export interface Command<Of extends Flags = Flags> {
  readonly name: string
  /** A word by which it is looked for, too: it is no name of it, but leads to it. */
  readonly alsoCalled?: string
  /** What it does, in a line. */
  readonly summary: string
  /** More about it, in the help. */
  readonly details?: string
  /** What it takes beside flags, such as `<url>`. */
  readonly positionals?: readonly string[]
  /** What it takes any number of after those, such as `[key…]`. */
  readonly more?: string
  readonly flags: Of
  /** What `--json` prints. */
  readonly json: string
  /** What its exit codes mean, where the program's do not say enough; `undefined` for one that it does not have. */
  readonly exitCodes?: Readonly<Record<number, string | undefined>>
  /** Whole lines to type, without the program's name. */
  readonly examples: readonly [string, ...string[]]
  /**
   * Does it.
   * @returns the exit code
   * @throws UsageError, or any error whose message is for the user
   */
  run(input: Input<Of>, screen: Screen): Promise<number>
}

/** Commands under a name, such as `keys create`. */
export interface CommandGroup {
  readonly name: string
  readonly summary: string
  readonly commands: readonly Command[]
}

/** Checks the types of a command's flags against what it does with them. */
export const defineCommand = <Of extends Flags>(command: Command<Of>): Command => command as unknown as Command
