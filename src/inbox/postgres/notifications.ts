import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { CoalescedTask } from '../../internal/coalesced-task.ts'
import { type Timer, unref, within } from '../../internal/timers.ts'
import type { DatabaseListener } from '../sql/database.ts'
import type { Signal } from '../sql/signal.ts'
import type { Connections } from './connections.ts'
import { quoted } from './schema.ts'
import { query } from './step.ts'

/** Delay before reconnecting (ms). */
const reconnectDelayMs = 500

/** Interval of connection checks (ms). A silently lost connection looks idle. */
const checkMs = 15_000

/** Minimum time between notifications of new events (ms). At 50, events arrived 29 ms late. */
const announceMs = 10

/** Mean interval of claims that follow notifications, over all processes (ms). */
const followMs = 10

/** Maximum wait for the last notification on close (ms). */
const lastAnnounceMs = 1_000

export interface NotificationsOptions {
  readonly connections: Connections
  /** Unquoted: also the channel. */
  readonly schema: string
  readonly processes: () => number
}

/**
 * Signals between processes. Listens on a connection of its own, and reconnects when cut off. Tells of new events after
 * their commit, in a statement of its own: a commit that notifies holds a global lock through its fsync.
 */
export class Notifications {
  readonly #options: NotificationsOptions
  /** Payload by which a process ignores its own news. */
  readonly #self: string = randomUUID()
  readonly #announced: CoalescedTask
  /** Every process hears of new events and most find nothing, so the more processes, the less often each one looks. */
  readonly #followed: CoalescedTask
  #listener: DatabaseListener | undefined
  #client: pg.Client | undefined
  #isListening = false
  /** The last event's id, as of the last check. */
  #lastId: unknown
  #timer: Timer | undefined
  #isStopped = false
  readonly #sending = new Set<Promise<unknown>>()

  constructor(options: NotificationsOptions) {
    this.#options = options
    this.#announced = new CoalescedTask(
      () => this.#send('accepting', this.#self),
      () => announceMs,
    )
    this.#followed = new CoalescedTask(
      () => this.#listener?.heard('new'),
      // Jitter keeps processes apart.
      () => followMs * options.processes() * (0.5 + Math.random()),
    )
  }

  /** True while notifications arrive, as far as this process knows. */
  get isListening(): boolean {
    return this.#isListening
  }

  listen(listener: DatabaseListener): void {
    if (this.#listener !== undefined) return
    this.#listener = listener
    void this.#connect()
  }

  async #connect(): Promise<void> {
    const { connections, schema } = this.#options
    try {
      const client = await connections.connect()
      this.#client = client
      client.on('notification', ({ payload = '' }) => this.#heard(payload))
      client.once('end', () => this.#reconnect())
      await client.query(`LISTEN ${quoted(schema)}`)
      this.#lastId = await this.#readLastId(client)
      if (this.#isStopped) return void (await client.end())
      this.#isListening = true
      this.#listener?.heard('any')
      this.#check(client)
    } catch {
      // An outage is logged where events can't be accepted.
      if (this.#client === undefined) this.#reconnect()
      else this.#client.end().catch(() => {})
    }
  }

  #heard(payload: string): void {
    if (payload === this.#self) return
    // Another process's `self`: it accepted events.
    if (/^[0-9a-f-]{36}$/.test(payload)) this.#followed.call()
    else this.#listener?.heard(payload as Signal)
  }

  async #readLastId(client: pg.Client): Promise<unknown> {
    const { rows } = await client.query(`SELECT max(id)::text AS id FROM ${quoted(this.#options.schema)}.event`)
    return rows[0].id
  }

  /** Ends a connection that no longer answers. If the last id moved unheard, a process died before it notified. */
  #check(client: pg.Client): void {
    this.#timer = setTimeout(() => {
      if (this.#client !== client) return
      this.#readLastId(client).then(
        (id) => {
          if (id !== this.#lastId) this.#listener?.heard('new')
          this.#lastId = id
          this.#check(client)
        },
        () => client.end().catch(() => {}),
      )
    }, checkMs)
    unref(this.#timer)
  }

  #reconnect(): void {
    this.#client = undefined
    const wasListening = this.#isListening
    this.#isListening = false
    if (this.#isStopped) return
    // The engine polls from now on.
    if (wasListening) this.#listener?.heard('any')
    this.#timer = setTimeout(() => void this.#connect(), reconnectDelayMs)
    unref(this.#timer)
  }

  notify(signal: Signal): void {
    if (this.#isStopped) return
    if (signal === 'new') this.#announced.call()
    else void this.#send('reading', signal)
  }

  async #send(on: 'accepting' | 'reading', payload: string): Promise<void> {
    const { connections, schema } = this.#options
    const sent = connections.send({ on, parts: [query('SELECT pg_notify($1, $2)', schema, payload)] }).catch(() => {})
    this.#sending.add(sent)
    await sent
    this.#sending.delete(sent)
  }

  /** Sends what is due, then nothing more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    void this.#followed.stop()
    await within(lastAnnounceMs, Promise.all([...this.#sending, this.#announced.stop()]), () => [])
    await this.#client?.end().catch(() => {})
  }
}
