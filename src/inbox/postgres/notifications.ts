import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type Timer, unref, within } from '../../internal/timers.ts'
import type { DatabaseListener } from '../sql/database.ts'
import type { Signal } from '../sql/signal.ts'
import { type Connections, rowsOfEach } from './connections.ts'
import { NotifyThrottle } from './notify-throttle.ts'
import { quoted } from './schema.ts'
import { query } from './step.ts'

/** Delay before reconnecting (ms). */
const reconnectDelayMs = 500

/** Interval of connection checks (ms). A silently lost connection looks idle. */
const checkMs = 15_000

/** Minimum time between notifications of new events, and after a failed one (ms). At 50, events arrived 29 ms late. */
const announceMs = 10
const announceRetryMs = 1_000

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
  readonly #throttle: NotifyThrottle
  #listener: DatabaseListener | undefined
  #client: pg.Client | undefined
  #isListening = false
  /** Last event's id, as of the last check. */
  #lastId: unknown
  #timer: Timer | undefined
  #isStopped = false
  #isDue = false
  #announcing: Promise<void> | undefined
  readonly #sending = new Set<Promise<unknown>>()

  constructor(options: NotificationsOptions) {
    this.#options = options
    this.#throttle = new NotifyThrottle(options.processes, () => this.#listener?.heard('new'))
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
      this.#lastId = await this.#readLastId(client, `LISTEN ${quoted(schema)};`)
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
    if (/^[0-9a-f-]{36}$/.test(payload)) this.#throttle.notified()
    else this.#listener?.heard(payload as Signal)
  }

  async #readLastId(client: pg.Client, first = ''): Promise<unknown> {
    const { schema } = this.#options
    const results = rowsOfEach(await client.query(`${first}SELECT max(id)::text AS id FROM ${quoted(schema)}.event`))
    return results.at(-1)?.[0]?.['id']
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
    this.#isListening = false
    if (this.#isStopped) return
    this.#timer = setTimeout(() => void this.#connect(), reconnectDelayMs)
    unref(this.#timer)
  }

  notify(signal: Signal): void {
    if (signal !== 'new') {
      const sent = this.#send('reading', signal)
      this.#sending.add(sent)
      return void sent.then(() => this.#sending.delete(sent))
    }
    // At once, then once more for all that follow within `announceMs`.
    this.#isDue = true
    if (!this.#isStopped) this.#announcing ??= this.#announce()
  }

  async #announce(): Promise<void> {
    while (this.#isDue && !this.#isStopped) {
      const waitMs = (await this.#tellNew()) ? announceMs : announceRetryMs
      await new Promise<void>((resolve) => unref(setTimeout(resolve, waitMs)))
    }
    this.#announcing = undefined
  }

  async #tellNew(): Promise<boolean> {
    this.#isDue = false
    const isSent = await this.#send('accepting', this.#self)
    this.#isDue ||= !isSent
    return isSent
  }

  #send(on: 'accepting' | 'reading', payload: string): Promise<boolean> {
    const { connections, schema } = this.#options
    return connections.send({ on, parts: [query('SELECT pg_notify($1, $2)', schema, payload)] }).then(
      () => true,
      () => false,
    )
  }

  /** Sends what is due, then nothing more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#throttle.stop()
    clearTimeout(this.#timer)
    const sent = Promise.all([...this.#sending, this.#isDue && this.#tellNew()])
    await within(lastAnnounceMs, sent, () => [])
    await this.#client?.end().catch(() => {})
  }
}
