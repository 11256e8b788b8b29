import { Duplex } from 'node:stream'
import { sleep } from '../../internal/timers.ts'
import { endOfBatch, isIdle, rollback, sync, welcome } from './protocol.ts'

/** The methods of PGlite that the inbox calls. */
export interface PgliteDatabase {
  readonly waitReady: Promise<void>
  /** Runs messages of the Postgres protocol, and returns the answers. Takes no lock. */
  execProtocolRaw(messages: Uint8Array): Promise<Uint8Array>
  /** Runs a function while no other query runs. */
  runExclusive<T>(run: () => Promise<T>): Promise<T>
}

/** Options of `pg` for connections to a PGlite. */
export const connectionTo = (db: PgliteDatabase) => ({
  stream: () => new PgliteLink(db) as never,
  user: 'postgres',
  database: 'postgres',
})

/** Poll interval while the application has a transaction open (ms). */
const busyMs = 2

/**
 * The socket of a `pg` connection to a PGlite. PGlite has a single session, so a link locks it for a whole transaction.
 * The others wait, as do the application's queries.
 */
class PgliteLink extends Duplex {
  readonly #database: PgliteDatabase
  #received = Buffer.alloc(0)
  #hasStarted = false
  /** Tail of the queue: messages are answered in order. */
  #queue: Promise<void> = Promise.resolve()
  /** Unlocks the session. `undefined` while this link has not locked it. */
  #unlock: (() => void) | undefined

  constructor(database: PgliteDatabase) {
    super()
    this.#database = database
  }

  // Socket methods that `pg` calls.

  connect(): void {
    process.nextTick(() => this.emit('connect'))
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#received = Buffer.concat([this.#received, chunk])
    if (!this.#hasStarted) this.#start()
    for (let end = endOfBatch(this.#received); end !== undefined; end = endOfBatch(this.#received)) {
      const messages = this.#received.subarray(0, end)
      this.#received = this.#received.subarray(end)
      this.#queue = this.#queue.then(() => this.#run(messages)).catch((error) => void this.destroy(error))
    }
    done()
  }

  override _final(done: () => void): void {
    // pg waits for the other side to end.
    void this.#queue.then(() => this.destroy())
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#queue = this.#queue.then(() => this.#end()).catch(() => {})
    done(error)
  }

  /** Answers the start-up message. Its user and database are ignored: a PGlite has one of each. */
  #start(): void {
    if (this.#received.length < 4 || this.#received.length < this.#received.readInt32BE(0)) return
    this.#hasStarted = true
    this.#received = this.#received.subarray(this.#received.readInt32BE(0))
    this.push(welcome)
  }

  async #run(messages: Buffer): Promise<void> {
    if (this.#unlock === undefined) await this.#lock()
    if (this.destroyed) return
    const answer = Buffer.from(await this.#database.execProtocolRaw(messages))
    if (isIdle(answer)) this.#free()
    if (!this.destroyed) this.push(answer)
  }

  async #lock(): Promise<void> {
    await this.#database.waitReady
    for (; !this.destroyed; await sleep(busyMs)) {
      await this.#lockQueries()
      // PGlite locks per query, not per transaction: the application may have one open.
      if (isIdle(await this.#database.execProtocolRaw(sync))) return
      this.#free()
    }
  }

  #lockQueries(): Promise<void> {
    return new Promise((resolve, reject) => {
      const hold = () =>
        new Promise<void>((unlock) => {
          this.#unlock = unlock
          resolve()
        })
      this.#database.runExclusive(hold).catch(reject)
    })
  }

  /** Rolls back what the connection left open. */
  async #end(): Promise<void> {
    if (this.#unlock === undefined) return
    try {
      await this.#database.execProtocolRaw(rollback)
    } finally {
      this.#free()
    }
  }

  #free(): void {
    this.#unlock?.()
    this.#unlock = undefined
  }
}
