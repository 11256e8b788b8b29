import { checkOptions, text } from '../../internal/check-options.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type { InboxHost } from '../inbox.ts'
import type { Pause, PauseOptions, Pauses, ResumeOptions } from '../reading.ts'

/** The stored pauses. */
export interface PauseStorage {
  /** Reads all of them. */
  list(): MaybePromise<readonly Pause[]>
  /** Adds a pause. Returns `false` if there is one already. */
  add(pause: Pause): MaybePromise<boolean>
  /** Removes the pause of a handler or of the inbox. Returns `false` if there is none. */
  remove(handler: string | undefined): MaybePromise<boolean>
}

/** The process that has opened the inbox. */
export interface PausedProcess {
  readonly host: Pick<InboxHost, 'logger' | 'handlers'>
  /** Called with all pauses when they have changed. Absent if it handles no events. */
  readonly obey?: ((pauses: readonly Pause[]) => void) | undefined
}

/** The pauses of an inbox, and what this process knows of them. */
export class StoredPauses implements Pauses {
  readonly #storage: PauseStorage
  readonly #process: PausedProcess | undefined
  #known: readonly Pause[] = []
  /** The number of reads that have begun, and the newest one whose answer was used. */
  #readsStarted = 0
  #newestRead = 0

  /** @param process absent if the inbox was opened only to be read */
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

  /** The change is stored. If it cannot be read now, it is read the next time. */
  async #readAfterChange(): Promise<void> {
    if (this.#process?.obey !== undefined) await this.read().catch(() => {})
  }

  /** Reads the pauses, so that this process obeys them. If that fails, it obeys those that it knows. */
  async read(): Promise<void> {
    const number = ++this.#readsStarted
    const pauses = await this.#storage.list()
    // A later read may have answered first.
    if (number < this.#newestRead) return
    this.#newestRead = number
    this.take(pauses)
  }

  /** Obeys the pauses that were read. */
  take(pauses: readonly Pause[]): void {
    if (this.#process?.obey === undefined) return
    const { host, obey } = this.#process
    const { logger } = host
    const added = pauses.filter((pause) => !has(this.#known, pause))
    const removed = this.#known.filter((pause) => !has(pauses, pause))
    if (added.length === 0 && removed.length === 0) return
    this.#known = pauses
    for (const pause of sorted(added)) logger.warn(pause, `${nameOf(pause)} is paused: operators have to resume it`)
    for (const pause of removed) logger.info({ handler: pause.handler }, `${nameOf(pause)} was resumed`)
    obey(pauses)
  }
}

const nameOf = ({ handler }: Pause): string => (handler === undefined ? 'the inbox' : `the handler ${handler}`)

const has = (pauses: readonly Pause[], { handler }: Pause): boolean => pauses.some((each) => each.handler === handler)

const sorted = (pauses: readonly Pause[]): readonly Pause[] =>
  [...pauses].sort((a, b) => a.since.getTime() - b.since.getTime())
