import { WebhookError } from '../../errors.ts'
import { processName } from '../../internal/process-name.ts'
import { sleep } from '../../internal/timers.ts'
import type { Acceptance, InboxHost } from '../inbox.ts'
import type { Database, DatabaseListener, NewEvent } from '../sql/database.ts'
import { GroupCommit } from './commits.ts'
import { inTransaction, type SqliteDatabase } from './connection.ts'
import { type CommitOptions, type InboxLimits, SyncDatabase } from './database.ts'
import { closedOnError, type OwnedFile, openInboxes, requirePath, withFileError } from './file.ts'
import { hashKey } from './hash.ts'
import { offer } from './statements.ts'
import { fileTransactions } from './transactions.ts'
import { FileWatch } from './watch.ts'

/** @throws WebhookError `invalid_option` if it isn't a connection to the file */
function checkConnection(client: object, path: string): SqliteDatabase {
  const connection = client as SqliteDatabase
  if (typeof connection.prepare === 'function' && requirePath(connection) === path) return connection
  throw new WebhookError('invalid_option', `accept: client must be a connection to ${path}, where the inbox is`)
}

/** A file this process owns. */
export class FileDatabase extends SyncDatabase {
  readonly process = processName
  readonly hashKey = hashKey
  readonly transaction: Database['transaction']
  readonly #host: Pick<InboxHost, 'logger'>
  readonly #file: OwnedFile
  readonly #commits: GroupCommit
  readonly #release = () => this.#releaseFile()
  #listener: DatabaseListener | undefined
  #watch: FileWatch | undefined

  /** Closes the file if it cannot be used. */
  static over(host: InboxHost, file: OwnedFile, limits: Required<InboxLimits>): FileDatabase {
    return closedOnError(
      () => file.close(),
      () => withFileError(file.path, () => new FileDatabase(host, file, limits)),
    )
  }

  private constructor(host: InboxHost, file: OwnedFile, limits: Required<InboxLimits>) {
    super(file.database, { ...limits, isStrict: host.order === 'strict' })
    this.#host = host
    this.#file = file
    this.#commits = new GroupCommit(file, this.steps.counter, {
      // If the commit succeeded after all, the sender's retries are duplicates, so find the events in the file.
      onFailed: () => this.#watch?.lookAgain(),
      onLost: (error) => this.#lost(error),
    })
    this.transaction = fileTransactions(this.#commits, file.database)
    openInboxes().set(file.path, this.#release)
  }

  #forgetOpen(): void {
    const inboxes = openInboxes()
    if (inboxes.get(this.#file.path) === this.#release) inboxes.delete(this.#file.path)
  }

  override open(opened: () => Promise<void>): void {
    void sleep(this.#file.lease.holdMs).then(() => this.start(opened, this.#host.logger))
  }

  protected override commit<T>(write: () => T, options?: CommitOptions): Promise<T> {
    return this.#commits.add(write, options)
  }

  listen(listener: DatabaseListener): void {
    this.#listener = listener
    const { lost } = this.#file.lease
    if (lost !== undefined) return listener.lost(lost)
    const { logger } = this.#host
    const changed = () => listener.heard('any')
    this.#watch ??= new FileWatch({ file: this.#file, commits: this.#commits, logger, changed })
  }

  offer(client: object, { hash, media, event, head, owed }: Omit<NewEvent, 'changes'>): Acceptance {
    const connection = checkConnection(client, this.#file.path)
    const now = Date.now()
    const values = [hash, Number(media), now, event, head, owed ?? '[]', now, hash]
    return Number(connection.prepare(offer).run(...values).changes) === 0 ? 'duplicate' : 'accepted'
  }

  override get isOurs(): boolean {
    return this.#commits.isOwner()
  }

  #lost(error: WebhookError): void {
    this.#host.logger.error({ err: error }, 'the inbox lost its file and has stopped')
    this.#watch?.stop()
    this.#listener?.lost(error)
    this.#file.rescueLog()
  }

  /** Another inbox of this process opens the file, and continues with its events. */
  #releaseFile(): void {
    const { path, lease, database } = this.#file
    const fix = 'expected after a hot reload; otherwise make only one receiver per file'
    const error = new WebhookError('unavailable', `another receiver of this process has opened ${path}: ${fix}`)
    this.#forgetOpen()
    this.#listener?.flush()
    this.#commits.rejectRest(error)
    try {
      inTransaction(database, () => {
        this.steps.releaseAll()
        lease.release()
      })
    } catch {
      // The other inbox assumes a crash, which does no harm.
    }
    lease.lost = error
    this.#watch?.stop()
    this.#host.logger.warn({ path }, 'the inbox handed its file to another receiver of this process')
    this.#listener?.lost(error)
    this.#file.unlock()
  }

  override async close(): Promise<void> {
    if (this.isClosed) return
    this.#watch?.stop()
    // Without its row, this process can write nothing more. If this fails, the next process takes it over.
    this.#commits.add(() => this.#file.lease.release()).catch(() => {})
    await this.#commits.close()
    this.isClosed = true
    this.#forgetOpen()
    this.#file.close()
  }
}
