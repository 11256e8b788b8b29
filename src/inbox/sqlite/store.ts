import { WebhookError } from '../../errors.ts'
import { processName } from '../../internal/process-name.ts'
import type { InboxHost } from '../inbox.ts'
import type { StoreListener } from '../sql/store.ts'
import { inTransaction } from '../sqlite-tables/database.ts'
import type { InboxLimits } from '../sqlite-tables/storage.ts'
import { SqliteStore } from '../sqlite-tables/store.ts'
import { GroupCommit } from './commits.ts'
import { closedOnError, type OwnedFile, withFileError } from './file.ts'
import { rememberOpen } from './openers.ts'
import { SqliteTransactions } from './transactions.ts'
import { FileWatch } from './watch.ts'

/** The store of a file this process owns. */
export class FileStore extends SqliteStore {
  readonly #host: InboxHost
  readonly #file: OwnedFile
  readonly #commits: GroupCommit
  readonly #forgetOpen: () => void
  #watch: FileWatch | undefined

  static open(host: InboxHost, file: OwnedFile, limits: InboxLimits): FileStore {
    return closedOnError(
      () => file.close(),
      () => withFileError(file.path, () => new FileStore(host, file, limits)),
    )
  }

  private constructor(host: InboxHost, file: OwnedFile, limits: InboxLimits) {
    const commits = new GroupCommit(file, {
      // If the commit succeeded after all, the sender's retries are duplicates, so find the events in the file.
      onFailed: () => {
        this.startOver()
        this.#watch?.lookAgain()
      },
      onLost: (error) => this.#lost(error),
    })
    const transactions = new SqliteTransactions(commits, file)
    super({
      storage: file,
      commits,
      owner: file.owner,
      transact: (attempt, scope, run) => transactions.run(attempt, scope, run),
      limits,
      host,
      process: processName,
      // No limit, to avoid head-of-line blocking by one media item.
      readAhead: Number.POSITIVE_INFINITY,
      maxBytes: Number.POSITIVE_INFINITY,
    })
    this.#host = host
    this.#file = file
    this.#commits = commits
    this.#forgetOpen = rememberOpen(file.path, () => this.#handOverFile())
  }

  override async begin(listener: StoreListener): Promise<void> {
    await super.begin(listener)
    this.#watch ??= new FileWatch(this.#file, this.#commits, this.#host.logger, () => {
      this.startOver()
      listener.heard('any')
    })
  }

  #lost(error: WebhookError): void {
    this.#host.logger.error({ err: error }, 'the inbox lost its file and has stopped')
    this.#watch?.stop()
    this.listener?.lost(error)
    this.#file.rescueLog()
  }

  /** Another inbox of this process opens the file, and continues with its events. */
  #handOverFile(): void {
    const { path, owner, database } = this.#file
    const fix = 'expected after a hot reload; otherwise make only one receiver per file'
    const error = new WebhookError('unavailable', `another receiver of this process has opened ${path}: ${fix}`)
    this.#forgetOpen()
    this.#commits.giveUp(error)
    try {
      inTransaction(database, () => owner.release())
    } catch {
      // The other inbox assumes a crash, which does no harm.
    }
    owner.giveUp(error)
    this.#watch?.stop()
    this.#host.logger.warn({ path }, 'the inbox handed its file to another receiver of this process')
    this.listener?.lost(error)
    this.#file.unlock()
  }

  override async accepted(): Promise<void> {
    await super.accepted()
    await this.#commits.settle()
  }

  override async end(): Promise<void> {}

  override async close(): Promise<void> {
    this.#watch?.stop()
    // Without its row, this process can write nothing more. If this fails, the next process assumes a crash, which does
    // no harm.
    this.#commits.add(() => this.#file.owner.release()).catch(() => {})
    await this.#commits.close()
    super.close()
    this.#forgetOpen()
    this.#file.close()
  }
}
