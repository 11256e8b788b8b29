import { Duplex } from 'node:stream'
import { sleep } from '../../internal/timers.ts'
import { endOfBatch, isIdle, rollback, sync, welcome } from './protocol.ts'

/** The methods of a PGlite that the inbox calls. */
export interface PgliteDatabase {
  /** Resolves once the database can be used. */
  readonly waitReady: Promise<void>
  /** Runs messages of Postgres' protocol and returns the answers, without waiting for a lock. */
  execProtocolRaw(messages: Uint8Array): Promise<Uint8Array>
  /** Runs a function while no other query runs. */
  runExclusive<T>(run: () => Promise<T>): Promise<T>
}

/** The options of `pg` for connections that end in a PGlite. */
export const connectionTo = (db: PgliteDatabase) => ({
  stream: () => new PgliteLink(db) as never,
  user: 'postgres',
  database: 'postgres',
})

/** Delay before the next try while the application has a transaction open (ms). */
const busyMs = 2

/**
 * The socket of a connection of `pg` that ends in a PGlite. A PGlite has one session, so a link locks it from the first
 * message of a transaction to its end: the others wait, as the application's own queries do.
 */
class PgliteLink extends Duplex {
  readonly #database: PgliteDatabase
  #received = Buffer.alloc(0)
  #hasStarted = false
  /** Messages are answered in their order. */
  #queue: Promise<void> = Promise.resolve()
  /** Unlocks the session. `undefined` while this link has not locked it. */
  #unlock: (() => void) | undefined

  constructor(database: PgliteDatabase) {
    super()
    this.#database = database
  }

  // What `pg` calls of a socket.

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
    // pg waits for the end of the other side.
    void this.#queue.then(() => this.destroy())
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#queue = this.#queue.then(() => this.#end()).catch(() => {})
    done(error)
  }

  /** Answers the first message, which names a user and a database: a PGlite has one of each. */
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
      // PGlite locks the session for each query of a transaction, and not for the transaction.
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

  /** Rolls back what a connection leaves behind. */
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
