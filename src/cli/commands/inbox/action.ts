import type { InspectedInbox } from '../../../inbox/reading.ts'
import type { Screen } from '../../shared/screen.ts'
import type { actionFlags, InboxInput } from './flags.ts'
import type { InboxTarget } from './target.ts'

export interface ActionContext {
  readonly inbox: InspectedInbox
  readonly target: InboxTarget
  readonly values: InboxInput['values']
  /** The words after the action. */
  readonly words: readonly string[]
  readonly screen: Screen
}

export interface InboxAction {
  /** A line of the help: usage and summary. */
  readonly help: readonly [usage: string, what: string]
  readonly flags: readonly (keyof typeof actionFlags)[]
  /** One `key` or `id`, or any number of keys. Absent if it takes none. */
  readonly takes?: 'key' | 'id' | 'keys'
  readonly serves?: true
  /** Absent for `migrate`, which opens no inbox. @returns the exit code */
  readonly run?: (context: ActionContext) => Promise<number>
}
