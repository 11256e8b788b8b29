import { WebhookError } from '../../errors.ts'
import { type Rules, wholeNumber } from '../../internal/check-options.ts'
import type { Logger } from '../../internal/logger.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import { OutageLog } from '../../internal/outage-log.ts'
import { sleep } from '../../internal/timers.ts'
import type { Database, Failure, Statement, Step, Value } from '../sql/database.ts'
import { isStorageFailure, type SqliteDatabase } from './connection.ts'
import { dialect, hashMedia, SharedText } from './dialect.ts'
import { type SqliteStep, SqliteSteps, type StepsOptions } from './steps.ts'

/** The limits of an inbox in SQLite. */
export interface InboxLimits {
  /**
   * Number of events handled at a time.
   * @defaultValue 16
   */
  readonly concurrency?: number
  /**
   * Maximum number of events waiting for a slot or a retry. Past it, deliveries are answered 503.
   * @defaultValue 10_000
   */
  readonly maxWaiting?: number
  /**
   * Maximum number of events kept as dead letters, the newest. Up to 1,000 unreadable deliveries are kept besides.
   * @defaultValue 10_000
   */
  readonly maxDeadLetters?: number
  /**
   * Time event keys are remembered, from the end of their event (ms).
   * @defaultValue 86_400_000 (24 h)
   */
  readonly ttlMs?: number
}

export const limitRules: Rules<InboxLimits> = {
  concurrency: wholeNumber(),
  maxWaiting: wholeNumber(),
  maxDeadLetters: wholeNumber(),
  ttlMs: wholeNumber(),
}

export const readLimits = ({
  concurrency = 16,
  maxWaiting = 10_000,
  maxDeadLetters = 10_000,
  ttlMs = 86_400_000,
}: InboxLimits): Required<InboxLimits> => ({ concurrency, maxWaiting, maxDeadLetters, ttlMs })

/** Delay before the start is retried, while the tables can't be read (ms). */
const startRetryMs = 1_000

/** How a write is committed. */
export interface CommitOptions extends Pick<SqliteStep<unknown>, 'isLight' | 'canWait'> {
  /** True for a handler's write: it may throw, and make the commit fail. */
  readonly isHandlers?: boolean
}

/** What a file, an object's storage and a file that is only inspected have in common: SQLite, called synchronously. */
export abstract class SyncDatabase implements Database {
  readonly steps: SqliteSteps
  readonly dialect = dialect
  readonly hashMedia = hashMedia
  readonly isListening = true
  abstract readonly hashKey: (key: string) => string
  abstract readonly transaction: Database['transaction']
  protected isClosed = false
  readonly #text: SharedText

  constructor(database: SqliteDatabase, options: StepsOptions) {
    this.steps = new SqliteSteps(database, options)
    this.#text = new SharedText(database)
  }

  /** Runs a function in a transaction, together with others or not. It may run again if that fails. */
  protected abstract commit<T>(write: () => T, options?: CommitOptions): MaybePromise<T>

  abstract open(opened: () => Promise<void>): void

  get isOurs(): boolean {
    return true
  }

  /** Retries the start until it succeeds, or the storage is lost. */
  protected async start(opened: () => Promise<void>, logger: Logger): Promise<void> {
    const outage = new OutageLog()
    while (!this.isClosed && this.isOurs) {
      try {
        return await opened()
      } catch (error) {
        if (!this.isOurs) return
        outage.failed(() => logger.error({ err: error }, 'the inbox could not start, and tries again'))
        await sleep(startRetryMs)
      }
    }
  }

  async ready(): Promise<void> {}

  async run<Result>(step: Step<Result>): Promise<Result> {
    const { run, committed, isLight = false, canWait = false } = step as SqliteStep<Result>
    const result = await this.commit(run, { isLight, canWait })
    committed?.()
    if (result instanceof WebhookError) throw result
    return result
  }

  read<Row>(sql: string, values?: readonly Value[]): Row[] {
    this.checkOpen()
    return this.#text.read(sql, values)
  }

  async change(statements: readonly Statement[]): Promise<readonly number[]> {
    this.checkOpen()
    return this.commit(() => statements.map((statement) => this.#text.change(statement)))
  }

  protected checkOpen(): void {
    if (this.isClosed) throw new WebhookError('closing', 'the inbox is closed')
  }

  readonly failure = (error: unknown): Failure => (isStorageFailure(error) ? 'transient' : undefined)

  abstract close(): MaybePromise<void>
}
