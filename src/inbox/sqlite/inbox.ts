import { WebhookError } from '../../errors.ts'
import { consoleLogger, type Logger } from '../../internal/logger.ts'
import type { MaybePromise } from '../../internal/maybe-promise.ts'
import type {
  Acceptance,
  AcceptedEvent,
  CloseOptions,
  CloseReport,
  Handle,
  Inbox,
  InboxStats,
  ReadRefused,
  RefusedDelivery,
  UnfinishedEvent,
} from '../inbox.ts'
import { closingTime } from '../shared/closing.ts'
import { Handling } from '../shared/handling.ts'
import { Job } from '../shared/job.ts'
import { Jobs } from '../shared/jobs.ts'
import { unreadable } from '../shared/unreadable.ts'
import { SqliteCleanUp } from './clean-up.ts'
import { GroupCommit } from './commits.ts'
import { hashKey } from './events.ts'
import { type SqliteFile, usable } from './file.ts'
import { SqliteLedger } from './ledger.ts'
import { OpenDeadLetters } from './open-letters.ts'
import { SqliteUpkeep } from './upkeep.ts'

export interface SqliteInboxLimits {
  readonly concurrency: number
  readonly maxWaiting: number
  readonly maxDeadLetters: number
  readonly ttlMs: number
}

/** The inbox over its file: who waits is in memory too, and the file is read only when it is opened. */
export class SqliteInbox implements Inbox {
  readonly deadLetters: OpenDeadLetters
  readonly #maxWaiting: number
  readonly #file: SqliteFile
  readonly #commits: GroupCommit
  readonly #jobs = new Jobs()
  readonly #handling: Handling
  readonly #upkeep: SqliteUpkeep
  #readRefused: ReadRefused = unreadable
  #logger: Logger = consoleLogger
  /** How many events are on their way to the disk. */
  #pending = 0
  #closing: Promise<CloseReport> | undefined

  constructor(file: SqliteFile, { concurrency, maxWaiting, maxDeadLetters, ttlMs }: SqliteInboxLimits) {
    this.#maxWaiting = maxWaiting
    this.#file = file
    const { database, letters } = file
    const logger = () => this.#logger
    // Events of a commit that failed may be in the file all the same, and their next deliveries are duplicates then.
    this.#commits = new GroupCommit(database, () => this.#upkeep.suspect())
    const ledger = new SqliteLedger(this.#commits, this.#file, logger)
    this.#handling = new Handling({ jobs: this.#jobs, ledger, concurrency })
    const cleanUp = new SqliteCleanUp(database, ttlMs)
    const onChanged = () => this.#lookInto()
    this.#upkeep = new SqliteUpkeep({ database, cleanUp, letters, maxDeadLetters, logger, onChanged })
    this.deadLetters = new OpenDeadLetters({
      file,
      logger,
      readRefused: (refused) => this.#readRefused(refused),
      checkOpen: () => this.#checkOpen(),
      isFull: () => this.#isFull(),
      onReplayed: () => this.#takeUp(),
    })
  }

  start(handle: Handle, logger: Logger, readRefused = this.#readRefused): void {
    if (this.#handling.hasStarted) throw new WebhookError('invalid_option', 'an inbox serves one receiver')
    this.#handling.start(handle)
    this.#logger = logger
    this.#readRefused = readRefused
    usable(this.#file.path, () => this.#lookInto())
    this.#upkeep.start()
  }

  /** Looks what another process has left in the file, before it crashed or by replaying dead letters. */
  #lookInto(): void {
    this.#takeUp()
    this.deadLetters.replayMarked()
  }

  /** Hands over what waits in the file and is not at hand. */
  #takeUp(): void {
    for (const stored of this.#file.events.waiting(this.#jobs.rows())) {
      const { row, begun, event, receivedAt, dueAt } = stored
      const job = new Job({ event, receivedAt }, { row, begun, before: stored })
      this.#jobs.add(job)
      const delayMs = dueAt - Date.now()
      if (delayMs > 0) this.#handling.addLater(job, delayMs)
      else this.#handling.add(job)
    }
  }

  accept(accepted: AcceptedEvent): MaybePromise<Acceptance> {
    const { event, receivedAt } = accepted
    this.#checkOpen()
    if (this.#jobs.get(event.key) !== undefined) return 'duplicate'
    if (this.#isFull()) return 'overloaded'
    const keyHash = hashKey(event.key)
    const text = JSON.stringify(event)
    this.#pending++
    return this.#commits
      .add(() => this.#file.events.accept(keyHash, text, receivedAt))
      .then((row) => this.#committed(accepted, row))
      .finally(() => this.#pending--)
  }

  #committed(accepted: AcceptedEvent, row: number | undefined): Acceptance {
    if (row === undefined) return 'duplicate'
    const job = new Job(accepted, { row })
    this.#jobs.add(job)
    this.#handling.add(job)
    return 'accepted'
  }

  #checkOpen(): void {
    if (!this.#handling.hasStarted) throw new WebhookError('unavailable', 'the inbox has not been started')
    if (this.#closing !== undefined) throw new WebhookError('closing', 'the inbox is closing')
  }

  #isFull(): boolean {
    return this.#jobs.size + this.#pending - this.#handling.running >= this.#maxWaiting
  }

  refuse(refused: RefusedDelivery): Promise<void> {
    this.#checkOpen()
    return this.#commits.add(() => this.#file.letters.refuse(refused))
  }

  stats(): InboxStats {
    return { ...this.#jobs.counts(), deadLetters: this.deadLetters.size }
  }

  close(options?: CloseOptions): Promise<CloseReport> {
    const timeoutMs = closingTime(options)
    this.#closing ??= this.#close(timeoutMs)
    return this.#closing
  }

  /** Finishes what runs. What waits is safe where it is. */
  async #close(timeoutMs: number): Promise<CloseReport> {
    this.#upkeep.stop()
    this.#commits.flush()
    // By the next turn of the microtask queue the events of that commit wait too.
    await undefined
    const unfinished: UnfinishedEvent[] = []
    this.#handling.stop(() => unfinished.push(...this.#jobs.giveUp(['waiting', 'retrying'])))
    await this.#jobs.idle(timeoutMs)
    unfinished.push(...this.#jobs.giveUp())
    this.#commits.close()
    this.deadLetters.close()
    this.#file.close()
    if (unfinished.length > 0)
      this.#logger.info({ events: unfinished.length }, 'the inbox closed; these events wait in its file')
    return { unfinished }
  }
}
