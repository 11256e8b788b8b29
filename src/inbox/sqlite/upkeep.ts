import type { Logger } from '../../internal/logger.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { type Timer, unref } from '../../internal/timers.ts'
import type { SqliteCleanUp } from '../sqlite-tables/clean-up.ts'
import type { GroupCommit } from './commits.ts'
import type { OwnedFile } from './file.ts'
import { versionOf } from './lease.ts'
import { LogSize } from './log-size.ts'

/** The pause between two checks of the file, in ms. */
const watchMs = 250

/** Pauses between two clean-ups in ms: usually, while there is much to clean up, and after a failure. */
const pauses = { usual: 500, busy: 20, failed: 5_000 }

export interface UpkeepOptions {
  readonly file: OwnedFile
  readonly commits: GroupCommit
  readonly cleanUp: SqliteCleanUp
  /** Drops some dead letters beyond their limit. Resolves with `true` if there may be more. */
  readonly trim: () => Promise<boolean>
  readonly logger: Logger
  readonly outage: OutageLog
  /** Called when another process has changed the file. */
  onChanged(): void
}

/** The regular work on the file: it notices changes of other processes every 250 ms, and cleans up every 500 ms. */
export class SqliteUpkeep {
  readonly #options: UpkeepOptions
  readonly #readVersion: () => number
  #version: number | undefined
  #watchTimer: Timer | undefined
  #cleanUpTimer: Timer | undefined
  readonly #log: LogSize
  readonly #reading = new OutageLog()
  #isStopped = false

  constructor(options: UpkeepOptions) {
    this.#options = options
    this.#readVersion = versionOf(options.file.database)
    this.#log = new LogSize(options.file, options.logger)
    this.#version = this.#readVersion()
  }

  start(): void {
    this.#watchTimer = setInterval(() => this.#watch(), watchMs)
    unref(this.#watchTimer)
    this.#cleanUpLater(pauses.usual)
  }

  /** Treats the file as changed the next time. */
  readAgain(): void {
    this.#version = undefined
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#watchTimer)
    clearTimeout(this.#cleanUpTimer)
  }

  #watch(): void {
    const { commits, logger, onChanged } = this.#options
    // Between deliveries nothing else notices that the file was deleted.
    if (!commits.isOwner()) return
    try {
      const version = this.#readVersion()
      const hasChanged = version !== this.#version
      this.#version = version
      if (hasChanged) onChanged()
      this.#log.check()
      this.#reading.worked()
    } catch (error) {
      this.readAgain()
      this.#reading.failed(() => logger.warn({ err: error }, 'the inbox could not read its file'))
    }
  }

  #cleanUpLater(pauseMs: number): void {
    if (this.#isStopped) return
    this.#cleanUpTimer = setTimeout(() => void this.#cleanUp().then((next) => this.#cleanUpLater(next)), pauseMs)
    unref(this.#cleanUpTimer)
  }

  /** Returns how long to pause, in ms. */
  async #cleanUp(): Promise<number> {
    const { commits, cleanUp, trim, logger, outage } = this.#options
    try {
      const hasMore = await trim()
      const goesOn = await commits.add(() => cleanUp.step())
      outage.worked()
      return goesOn || hasMore ? pauses.busy : pauses.usual
    } catch (error) {
      const log = () => logger.warn({ err: error }, 'the inbox could not clean up its file')
      if (!this.#isStopped) outage.failed(log)
      return pauses.failed
    }
  }
}
