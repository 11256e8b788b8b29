import type pg from 'pg'
import { type Timer, unref } from '../../internal/timers.ts'
import { lastId } from './claim/committed-mark.ts'
import type { Database } from './database.ts'
import { quoted } from './schema.ts'
import { rowsOfEach } from './statements.ts'

/** Delay before reconnecting (ms). */
const reconnectDelayMs = 500

/** Interval of connection checks (ms). A silently lost connection looks idle. */
const checkMs = 15_000

/** Minimum time between notifications, and after a failed one (ms). At 50, events arrived 29 ms late in the median. */
const announceMs = 10
const announceRetryMs = 1_000

/** Listens for events of other processes on a dedicated connection. Reconnects when cut off. */
export class Listener {
  readonly #database: Database
  readonly #heard: (payload: string) => void
  #client: pg.Client | undefined
  #isListening = false
  /** Last event id handed out, as of the last check. */
  #lastId: unknown
  #timer: Timer | undefined
  #isStopped = false

  /** @param heard called with the payload of each notification, and with `any` when some may have been missed */
  constructor(database: Database, heard: (payload: string) => void) {
    this.#database = database
    this.#heard = heard
  }

  /** True while notifications arrive, as far as this process knows. */
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
      // An outage is logged where events can't be accepted.
      if (this.#client === undefined) this.#reconnect()
      else this.#client.end().catch(() => {})
    }
  }

  async #readLastId(client: pg.Client, first = ''): Promise<unknown> {
    const results = rowsOfEach(await client.query(`${first}SELECT ${lastId(this.#database.schema)}::text AS id`))
    return results.at(-1)?.[0]?.['id']
  }

  /** Ends a connection that no longer answers. A new last id reveals events whose process died before notifying. */
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
 * Notifies other processes of new events, after their commit: Postgres serialises commits that notify, each through its
 * wait for the disk. If this process ends before that, the others find the events at their next poll.
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

  /** Announces new events: at once, then once more for all that follow within `announceMs`. */
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

  /** Returns false if the notification must be sent again. */
  async #notify(): Promise<boolean> {
    this.#isDue = false
    try {
      await this.#database.accepting.query('SELECT pg_notify($1, $2)', [this.#database.channel, this.#sender], 'notify')
      return true
    } catch {
      this.#isDue = true
      return false
    }
  }

  /** Sends what is due, then nothing more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#isDue) await this.#notify()
  }
}
