import type pg from 'pg'
import { type Timer, unref } from '../../internal/timers.ts'
import { lastId } from './claim/committed-mark.ts'
import type { Database } from './database.ts'
import { quoted } from './schema.ts'
import { rowsOfEach } from './statements.ts'

// The notifications between the processes of an inbox.

/** The pause before a new connection, in ms. */
const reconnectDelayMs = 500

/** The pause between two checks of the connection, in ms. A silently lost connection looks like an idle one. */
const checkMs = 15_000

/**
 * The minimum time between two notifications, in ms, and after one that failed. With 50 ms, events at
 * a steady 20 a second reached another process after 29 ms in the median. Now it is 5 ms.
 */
const announceMs = 10
const announceRetryMs = 1_000

/** Listens on its own connection for events of other processes. It connects again when the connection is cut off. */
export class Listener {
  readonly #database: Database
  readonly #heard: (payload: string) => void
  #client: pg.Client | undefined
  #isListening = false
  /** The last id that an event had been given at the last check. */
  #lastId: unknown
  #timer: Timer | undefined
  #isStopped = false

  /**
   * @param heard called with the payload of each notification, with `any` if it may have missed some
   */
  constructor(database: Database, heard: (payload: string) => void) {
    this.#database = database
    this.#heard = heard
  }

  /** `true` while notifications arrive, as far as this process knows. */
  get isListening(): boolean {
    return this.#isListening
  }

  async start(): Promise<void> {
    try {
      const client = await this.#database.connect()
      this.#client = client
      client.on('notification', ({ payload = '' }) => this.#heard(payload))
      client.once('end', () => this.#reconnect())
      this.#lastId = await this.#readLastId(client, `LISTEN ${quoted(this.#database.channel)};`)
      if (this.#isStopped) return void (await client.end())
      this.#isListening = true
      this.#heard('any')
      this.#check(client)
    } catch {
      // The inbox logs an outage when it cannot accept events.
      if (this.#client === undefined) this.#reconnect()
      else this.#client.end().catch(() => {})
    }
  }

  async #readLastId(client: pg.Client, first = ''): Promise<unknown> {
    const results = rowsOfEach(await client.query(`${first}SELECT ${lastId(this.#database.schema)}::text AS id`))
    return results.at(-1)?.[0]?.['id']
  }

  /**
   * Ends a connection if Postgres no longer answers on it, so that a new one is made. If a process has ended between the
   * commit of an event and its notification, the id tells of the event.
   */
  #check(client: pg.Client): void {
    this.#timer = setTimeout(() => {
      if (this.#client !== client) return
      this.#readLastId(client).then(
        (id) => {
          if (id !== this.#lastId) this.#heard('new')
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
    this.#timer = setTimeout(() => void this.start(), reconnectDelayMs)
    unref(this.#timer)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#client?.end().catch(() => {})
  }
}

/**
 * Notifies the other processes of new events, after their commit. Postgres runs commits that notify one after another,
 * each through its wait for the disk: with 2 and 4 processes, about 1.3 times as many events were accepted per second
 * once their commits did not notify. A notification alone waits for no disk. If this process ends before it, the others
 * find the events when they look for them the next time.
 */
export class Announcements {
  readonly #database: Database
  readonly #sender: string
  #isDue = false
  #isStopped = false
  #running: Promise<void> | undefined

  /** @param sender the payload of the notifications */
  constructor(database: Database, sender: string) {
    this.#database = database
    this.#sender = sender
  }

  /** There are new events. The first notification is sent immediately, and one more for all that follow in `announceMs`. */
  announce(): void {
    this.#isDue = true
    if (!this.#isStopped) this.#running ??= this.#run()
  }

  async #run(): Promise<void> {
    while (this.#isDue && !this.#isStopped) {
      const waitMs = (await this.#notify()) ? announceMs : announceRetryMs
      await new Promise<void>((resolve) => unref(setTimeout(resolve, waitMs)))
    }
    this.#running = undefined
  }

  /** Returns `false` if the notification has to be sent again. */
  async #notify(): Promise<boolean> {
    this.#isDue = false
    try {
      await this.#database.accepting.query('SELECT pg_notify($1, $2)', [this.#database.channel, this.#sender], 'notify')
      return true
    } catch {
      // The inbox logs an outage when it cannot accept events.
      this.#isDue = true
      return false
    }
  }

  /** Sends what is due, and nothing afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#isDue) await this.#notify()
  }
}
