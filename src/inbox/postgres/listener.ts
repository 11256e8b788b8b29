import type pg from 'pg'
import { type Timer, unref } from '../../internal/timers.ts'
import type { Database } from './database.ts'
import { quoted } from './schema.ts'

/** The pause before a new connection, in ms. */
const pauseMs = 500

/** The pause between two checks of the connection, in ms. A silently lost connection looks like an idle one. */
const checkMs = 2_000

/** Listens on its own connection for events of other processes. It connects again when the connection is cut off. */
export class Listener {
  readonly #database: Database
  readonly #heard: (payload: string) => void
  #client: pg.Client | undefined
  #timer: Timer | undefined
  #isStopped = false

  /** @param heard called with the payload of each notification, and with '' if it may have missed some */
  constructor(database: Database, heard: (payload: string) => void) {
    this.#database = database
    this.#heard = heard
  }

  async start(): Promise<void> {
    try {
      const client = await this.#database.connect()
      this.#client = client
      client.on('notification', ({ payload = '' }) => this.#heard(payload))
      client.once('end', () => this.#again())
      await client.query(`LISTEN ${quoted(this.#database.channel)}`)
      if (this.#isStopped) return void (await client.end())
      this.#heard('')
      this.#check(client)
    } catch {
      // The inbox logs an outage when it cannot accept events.
      if (this.#client === undefined) this.#again()
      else this.#client.end().catch(() => {})
    }
  }

  /** Ends a connection if Postgres no longer answers on it, so that a new one is made. */
  #check(client: pg.Client): void {
    this.#timer = setTimeout(() => {
      if (this.#client !== client) return
      client.query('SELECT 1').then(
        () => this.#check(client),
        () => client.end().catch(() => {}),
      )
    }, checkMs)
    unref(this.#timer)
  }

  #again(): void {
    this.#client = undefined
    if (this.#isStopped) return
    this.#timer = setTimeout(() => void this.start(), pauseMs)
    unref(this.#timer)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#client?.end().catch(() => {})
  }
}
