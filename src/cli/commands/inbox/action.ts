import type { InspectedInbox } from '../../../inbox/reading.ts'
import type { Screen } from '../../shared/screen.ts'
import type { actionFlags, InboxInput } from './flags.ts'
import type { Target } from './target.ts'

/** The inbox that an action is about, and what it was asked for. */
export interface ActionContext {
  readonly inbox: InspectedInbox
  readonly target: Target
  readonly values: InboxInput['values']
  /** The words after the name of the action. */
  readonly words: readonly string[]
  readonly screen: Screen
}

/** One of the words after the target, such as `replay`. */
export interface Action {
  /** One line for the help, with what follows the word. */
  readonly help: readonly [usage: string, what: string]
  /** The flags that it takes. */
  readonly flags: readonly (keyof typeof actionFlags)[]
  /** The arguments after the word: one `key` or `id`, or any number of keys. Absent if there are none. */
  readonly takes?: 'key' | 'id' | 'keys'
  /** `true` if it runs until it is interrupted. */
  readonly serves?: true
  /**
   * Absent for `migrate`, which opens no inbox.
   * @returns the exit code
   */
  readonly run?: (context: ActionContext) => Promise<number>
}
