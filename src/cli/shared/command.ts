import type { Flags, Values } from './flags.ts'
import type { Screen } from './screen.ts'

/** The parsed command line of a command. */
export interface CommandInput<Of extends Flags = Flags> {
  /** The value of each flag, from the command line or from its environment variable. */
  readonly values: Values<Of> & { readonly json: true | undefined }
  /** The names of the flags on the command line. Flags set by an environment variable are not among them. */
  readonly given: ReadonlySet<string>
  readonly positionals: readonly string[]
}

/** A command of the program. */
export interface Command<Of extends Flags = Flags> {
  readonly name: string
  /** A wrong name that users are likely to try. The error message then suggests this command. */
  readonly suggestedFor?: string
  /** One line for the help. It begins with a verb. */
  readonly summary: string
  /** More lines for the help. */
  readonly details?: string
  /** The names of the required arguments, such as `<url>`. */
  readonly positionals?: readonly string[]
  /** The name in code of a flag whose value can also be given as the only argument, without the name of the flag. */
  readonly positionalFlag?: keyof Of & string
  /** The name of any number of further arguments, such as `[key…]`. */
  readonly morePositionals?: string
  /** The command with each of the actions that can follow its first argument, under the name of the action. */
  readonly actions?: readonly Command[]
  /** The words that each argument can be, for the completion in a shell. An argument without words can be a file. */
  readonly argumentWords?: readonly (readonly string[])[]
  readonly flags: Of
  /** The help of `--json`. */
  readonly json: string
  /** The meaning of exit codes if it differs from the program's. `undefined` removes a code from the help. */
  readonly exitCodes?: Readonly<Record<number, string | undefined>>
  /**
   * `true` if the command runs until it is interrupted, or does so with some arguments. It then also ends when the
   * reader of its output has closed it.
   */
  readonly serves?: true | ((input: CommandInput<Of>) => boolean)
  /** Whole command lines, without the name of the program. */
  readonly examples: readonly string[]
  /**
   * Runs the command.
   * @returns the exit code
   * @throws UsageError if the command line is invalid, or any error with a message for the user
   */
  run(input: CommandInput<Of>, screen: Screen): Promise<number>
}

/** Commands under one name, such as `keys create`. */
export interface CommandGroup {
  readonly name: string
  readonly summary: string
  readonly commands: readonly Command[]
}

/** Infers the types of a command's values from its flags. */
export const defineCommand = <Of extends Flags>(command: Command<Of>): Command => command as unknown as Command
