import { Duplex } from 'node:stream'
import { PGlite } from '@electric-sql/pglite'
import { endOfBatch, isIdle, welcome } from '../../src/inbox/pglite/protocol.ts'
import { currentScope, isOver, Process, type Scope, type Task, type World } from './world.ts'

/**
 * The faults of a message. `lost`: it never arrives. `answer-lost`: it is carried out. `hung`: it is answered too late.
 */
export type PostgresFault = 'lost' | 'answer-lost' | 'hung'

/** The engine, which runs by the clock of the world. All runs share it, because it takes a second to start. */
let engine: Promise<PGlite> | undefined

/**
 * A real Postgres in JavaScript, of which a single session runs at a time. While a connection has a transaction open,
 * the others wait for it, as if it had locked everything.
 */
export class PostgresServer {
  readonly #database: PGlite
  readonly #process: Process
  /** The connection that is inside a transaction, and those that wait for its end. */
  #inTransaction: object | undefined
  #waiting: (() => void)[] = []
  #running: Promise<unknown> = Promise.resolve()

  private constructor(database: PGlite, world: World) {
    this.#database = database
    this.#process = new Process(world, 'postgres')
  }

  static async start(world: World): Promise<PostgresServer> {
    engine ??= PGlite.create()
    const server = new PostgresServer(await engine, world)
    await server.sql('DROP SCHEMA IF EXISTS media_webhooks CASCADE; DROP TABLE IF EXISTS written')
    await server.sql('CREATE TABLE written (what text)')
    return server
  }

  /** Runs SQL of the test itself, and returns the rows of its last statement. */
  async sql<Row>(text: string): Promise<Row[]> {
    const results = await this.#process.world.enter(this.#process, () => this.#database.exec(text))
    return (results.at(-1)?.rows ?? []) as Row[]
  }

  /** Runs the messages of a connection up to a point of synchronization, and returns the answers. */
  async run(connection: object, messages: Buffer): Promise<Buffer> {
    while (this.#inTransaction !== undefined && this.#inTransaction !== connection)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    const { world } = this.#process
    const before = this.#running
    const answered = (async () => {
      await before
      return Buffer.from(await world.enter(this.#process, () => this.#database.execProtocolRaw(messages)))
    })()
    this.#running = answered.catch(() => {})
    // No other connection may begin before the answer says whether a transaction is open.
    this.#inTransaction = connection
    const answer = await answered
    if (isIdle(answer)) this.#release(connection)
    return answer
  }

  /** Ends a connection: its transaction is rolled back. */
  async end(connection: object): Promise<void> {
    if (this.#inTransaction !== connection) return
    await this.#running
    await this.sql('ROLLBACK')
    this.#release(connection)
  }

  #release(connection: object): void {
    if (this.#inTransaction !== connection) return
    this.#inTransaction = undefined
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }
}

export interface PostgresLinkOptions {
  readonly world: World
  readonly server: PostgresServer
  readonly fault: () => PostgresFault | undefined
  /** Maximum time to the server or back, in ms. */
  readonly latencyMs: number
  /** Maximum time for which a transaction waits for its next statement, in ms. */
  readonly idleMs: number
}

/** The socket of a connection of `pg`: it speaks Postgres' protocol with the server through a network. */
export class PostgresLink extends Duplex {
  readonly #options: PostgresLinkOptions
  readonly #scope = currentScope() as Scope
  #received = Buffer.alloc(0)
  #hasStarted = false
  #idle: Task | undefined
  /** The arrival time of the newest packet in each direction: no packet overtakes another. */
  #arrival = { there: 0, back: 0 }

  constructor(options: PostgresLinkOptions) {
    super()
    this.#options = options
    // The end of the process rolls its transaction back.
    this.#scope.process.atEnd(() => void this.#options.server.end(this))
  }

  connect(): void {
    this.#travel('back', () => this.emit('connect'))
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
    this.#travel('there', () => this.#receive(chunk))
    done()
  }

  override _final(done: () => void): void {
    void this.#options.server.end(this)
    done()
    this.#travel('back', () => this.destroy())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    void this.#options.server.end(this)
    done(error)
  }

  #travel(way: 'there' | 'back', run: () => void, delayMs = 0): void {
    const { world, latencyMs } = this.#options
    const { process } = this.#scope
    const at = Math.max(this.#arrival[way], world.now + process.random.between(0, latencyMs) + delayMs)
    this.#arrival[way] = at
    world.schedule(process, at - world.now, () => !this.destroyed && run())
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk])
    if (!this.#hasStarted) return this.#start()
    const end = endOfBatch(this.#received)
    if (end === undefined) return
    const messages = this.#received.subarray(0, end)
    this.#received = this.#received.subarray(end)
    void this.#carryOut(messages)
  }

  #start(): void {
    this.#hasStarted = true
    this.#received = Buffer.alloc(0)
    this.#travel('back', () => this.push(welcome))
  }

  async #carryOut(messages: Buffer): Promise<void> {
    const { world, server, fault: draw, idleMs } = this.#options
    if (this.#idle) this.#idle.isCancelled = true
    const fault = draw()
    if (fault === 'lost') return this.#break()
    const answer = await server.run(this, messages)
    if (isOver(this.#scope) || this.destroyed) return void server.end(this)
    if (fault === 'answer-lost') return this.#break()
    if (!isIdle(answer)) this.#idle = world.schedule(this.#scope.process, idleMs, () => this.#break())
    this.#travel('back', () => this.push(answer), fault === 'hung' ? 20_000 : 0)
    if (this.#received.length > 0) this.#receive(Buffer.alloc(0))
  }

  #break(): void {
    void this.#options.server.end(this)
    this.#travel('back', () => this.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })))
  }
}
