import type pg from 'pg'
import { type Timer, unref } from '../../internal/timers.ts'
import type { Database } from './database.ts'
import { quoted } from './schema.ts'

/** The pause before the connection is made again, in ms. */
const pauseMs = 500

/** The pause between two checks of the connection, in ms. One that is lost without a word looks like one that is quiet. */
const checkMs = 2_000

/** Listens on a connection of its own for events that another process has accepted. It connects again when it is cut off. */
export class Listener {
  readonly #database: Database
  readonly #heard: (payload: string) => void
  #client: pg.Client | undefined
  #timer: Timer | undefined
  #isStopped = false

  /** @param heard called with the payload of each notification, and with '' when some may have been missed */
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
      // The inbox logs an outage where it matters: when it cannot accept.
      if (this.#client === undefined) this.#again()
      else this.#client.end().catch(() => {})
    }
  }

  /** Ends a connection on which Postgres no longer answers, so that another one is made. */
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
