import { checkOptions, text } from '../../internal/check-options.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { InboxHost } from '../inbox.ts'
import type { Pause, PauseOptions, Pauses, ResumeOptions } from '../reading.ts'

export interface PauseStorage {
  list(): MaybePromise<readonly Pause[]>
  /** Returns `false` if it is paused already. */
  add(pause: Pause): MaybePromise<boolean>
  /** Removes the pause of a handler or of the inbox. Returns `false` if there was none. */
  remove(handler: string | undefined): MaybePromise<boolean>
}

export interface PausedProcess {
  readonly host: Pick<InboxHost, 'logger' | 'handlers'>
  /** Called with all pauses after a change. Absent in a process that handles no events. */
  readonly applyPauses?: ((pauses: readonly Pause[]) => void) | undefined
}

/** Reads and writes pauses, and applies them in this process. */
export class StoredPauses implements Pauses {
  readonly #storage: PauseStorage
  readonly #process: PausedProcess | undefined
  #known: readonly Pause[] = []
  /** Reads started, and the newest one applied. */
  #readsStarted = 0
  #newestRead = 0

  /** @param process absent if the inbox is open for reading only */
  constructor(storage: PauseStorage, process?: PausedProcess) {
    this.#storage = storage
    this.#process = process
  }

  handlers(): readonly string[] {
    return this.#process?.host.handlers().map(({ name }) => name) ?? []
  }

  async list(): Promise<readonly Pause[]> {
    return sorted(await this.#storage.list())
  }

  async pause(options: PauseOptions = {}): Promise<boolean> {
    checkOptions('pause', options, { handler: text, by: text })
    const { handler, by } = options
    const pause = { ...(handler !== undefined && { handler }), since: new Date(), ...(by !== undefined && { by }) }
    const isNew = await this.#storage.add(pause)
    await this.#readAfterChange()
    return isNew
  }

  async resume(options: ResumeOptions = {}): Promise<boolean> {
    checkOptions('resume', options, { handler: text })
    const { handler } = options
    const wasPaused = await this.#storage.remove(handler)
    await this.#readAfterChange()
    return wasPaused
  }

  /** Best effort: the change is stored, and the next regular read picks it up. */
  async #readAfterChange(): Promise<void> {
    if (this.#process?.applyPauses !== undefined) await this.read().catch(() => {})
  }

  /** Reads the pauses and applies them. On failure the known ones stay in force. */
  async read(): Promise<void> {
    const number = ++this.#readsStarted
    const pauses = await this.#storage.list()
    // Stale: a later read answered first.
    if (number < this.#newestRead) return
    this.#newestRead = number
    this.take(pauses)
  }

  /** Applies pauses just read, and logs the changes. */
  take(pauses: readonly Pause[]): void {
    if (this.#process?.applyPauses === undefined) return
    const { host, applyPauses } = this.#process
    const { logger } = host
    const added = pauses.filter((pause) => !has(this.#known, pause))
    const removed = this.#known.filter((pause) => !has(pauses, pause))
    if (added.length === 0 && removed.length === 0) return
    this.#known = pauses
    for (const pause of sorted(added)) logger.warn(pause, `${nameOf(pause)} is paused until an operator resumes it`)
    for (const pause of removed) logger.info({ handler: pause.handler }, `${nameOf(pause)} was resumed`)
    applyPauses(pauses)
  }
}

const nameOf = ({ handler }: Pause): string => (handler === undefined ? 'the inbox' : `the handler ${handler}`)

const has = (pauses: readonly Pause[], { handler }: Pause): boolean => pauses.some((each) => each.handler === handler)

const sorted = (pauses: readonly Pause[]): readonly Pause[] =>
  [...pauses].sort((a, b) => a.since.getTime() - b.since.getTime())
