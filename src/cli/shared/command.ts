import type { Flags, Values } from './flags.ts'
import type { Screen } from './screen.ts'

export interface CommandInput<Of extends Flags = Flags> {
  /** From the command line or the flag's environment variable. */
  readonly values: Values<Of> & { readonly json: true | undefined }
  /** Flags on the command line; those from the environment are not in it. */
  readonly given: ReadonlySet<string>
  readonly positionals: readonly string[]
}

export interface Command<Of extends Flags = Flags> {
  readonly name: string
  /** A wrong name that users try; its error suggests this command. */
  readonly suggestedFor?: string
  /** One line for the help, beginning with a verb. */
  readonly summary: string
  readonly details?: string
  /** Required arguments, such as `<url>`. */
  readonly positionals?: readonly string[]
  /** A flag whose value may also be the first argument, without the flag. */
  readonly positionalFlag?: keyof Of & string
  /** Any number of further arguments, such as `[key…]`. */
  readonly morePositionals?: string
  /** One command per action that can follow the first argument. */
  readonly actions?: readonly Command[]
  readonly flags: Of
  readonly json: string
  /** Exit codes that differ from the program's. `undefined` removes one from the help. */
  readonly exitCodes?: Readonly<Record<number, string | undefined>>
  /** Set if the command runs until interrupted. It also ends when the reader of its output is gone. */
  readonly serves?: true | ((input: CommandInput<Of>) => boolean)
  /** Complete command lines, without the program name. */
  readonly examples: readonly string[]
  /**
   * @returns the exit code
   * @throws UsageError for an invalid command line; any other error has a message for the user
   */
  run(input: CommandInput<Of>, screen: Screen): Promise<number>
}

/** A group such as `keys create`, `keys list`. */
export interface CommandGroup {
  readonly name: string
  readonly summary: string
  readonly commands: readonly Command[]
}

/** Infers the value types from the flags. */
export const defineCommand = <Of extends Flags>(command: Command<Of>): Command => command as unknown as Command
