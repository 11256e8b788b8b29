import { type Acted, actOnEach, oneByOne } from '../../../inbox/operations/act-on-each.ts'
import { namedEvents } from '../../../inbox/operations/operations.ts'
import { ReplayedEvents } from '../../../inbox/operations/replay-outcome.ts'
import type { ReadableInbox } from '../../../inbox/reading.ts'
import { crypto } from '../../../internal/realm.ts'
import type { InboxView } from '../reading/titled.ts'
import { type Act, readKeys, type Selection } from './selection.ts'

export interface BulkAction {
  readonly id: string
  readonly act: Act
  readonly startedAt: Date
  /** `failed`: the inbox became unavailable. */
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  /** `undefined` while the events are being listed. */
  readonly total: number | undefined
  readonly done: number
  /** Keys of the first events acted on, up to `namedEvents`. */
  readonly keys: readonly string[]
  /** Tracks the outcomes of a replay. Absent for other actions, older replays, and inboxes that cannot list events. */
  readonly replayed: ReplayedEvents | undefined
  /** Events skipped: handled meanwhile, or acted on by another user or process. */
  readonly gone: number
  /** Events the inbox refused to act on, counted by error message. */
  readonly kept: ReadonlyMap<string, number>
  readonly error?: unknown
}

type RunningBulkAction = { -readonly [Name in keyof BulkAction]: BulkAction[Name] } & {
  kept: Map<string, number>
  keys: string[]
  readonly stopped: AbortController
}

/** How many of the newest actions keep the outcomes of their replays. */
const followedActions = 5

const rememberedActions = 100

/** Throttle for replays and retries: what failed under load must not fail again. */
const maxPerSecond = 100

/** Runs actions, and remembers the newest with their results. */
export class BulkActions {
  readonly #view: InboxView & Pick<ReadableInbox, 'operations'>
  readonly #changed: () => void
  readonly #actions = new Map<string, RunningBulkAction>()

  /** @param changed called when an action ends */
  constructor(view: InboxView & Pick<ReadableInbox, 'operations'>, changed: () => void) {
    this.#view = view
    this.#changed = changed
  }

  get(id: string): BulkAction | undefined {
    return this.#actions.get(id)
  }

  /** The newest first. */
  running(): readonly BulkAction[] {
    return [...this.#actions.values()].filter(({ state }) => state === 'running').reverse()
  }

  /** Stops an action before its next event. */
  stop(id: string): void {
    this.#actions.get(id)?.stopped.abort()
  }

  /** Starts an action. `ended` never rejects. */
  start(act: Act, selection: Selection): { readonly action: BulkAction; readonly ended: Promise<void> } {
    const id = crypto.randomUUID()
    const { operations } = this.#view
    const { events } = this.#view.inbox
    const replayed = act === 'replay' && events ? new ReplayedEvents({ events, operations }) : undefined
    const counts = { total: undefined, done: 0, keys: [], gone: 0, kept: new Map() }
    const begun = { startedAt: new Date(), state: 'running', stopped: new AbortController() } as const
    const action: RunningBulkAction = { id, act, replayed, ...begun, ...counts }
    // Their keys take memory.
    for (const older of [...this.#actions.values()].slice(0, -followedActions)) older.replayed = undefined
    this.#actions.set(id, action)
    const oldest = [...this.#actions.values()].find(({ state }) => state !== 'running')
    if (this.#actions.size > rememberedActions && oldest !== undefined) this.#actions.delete(oldest.id)
    return { action, ended: this.#run(action, selection) }
  }

  async #run(action: RunningBulkAction, selection: Selection): Promise<void> {
    try {
      const keys = await readKeys(this.#view, action.act, selection)
      action.total = keys.length
      const act = oneByOne((key) => this.#act(action.act, key))
      const perSecond = action.act === 'discard' ? undefined : maxPerSecond
      for await (const acted of actOnEach(keys, act, { perSecond, signal: action.stopped.signal })) count(action, acted)
      action.state = takenBy(action) < keys.length ? 'stopped' : 'done'
    } catch (error) {
      action.state = 'failed'
      action.error = error
    } finally {
      this.#changed()
    }
  }

  async #act(act: Act, key: string): Promise<boolean> {
    const { deadLetters, events } = this.#view.inbox
    if (act === 'retry') return (await events?.retryNow(key)) ?? false
    if (act === 'stop-handler') return (await events?.stop?.(key)) ?? false
    return deadLetters[act](key)
  }
}

function count(action: RunningBulkAction, acted: Acted): void {
  const { key } = acted
  if (acted.outcome === 'gone') action.gone++
  else if (acted.outcome === 'refused') action.kept.set(acted.reason, (action.kept.get(acted.reason) ?? 0) + 1)
  else {
    action.done++
    if (action.keys.length < namedEvents) action.keys.push(key)
    action.replayed?.add(key)
  }
}

/** Counts the events that an action has come to, whatever became of them. */
export const takenBy = ({ done, gone, kept }: BulkAction): number =>
  [...kept.values()].reduce((sum, count) => sum + count, done + gone)
