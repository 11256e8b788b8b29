import pg from 'pg'

/** The URL of a database, or the options of a pool. */
export type PostgresConnection = string | pg.PoolConfig

/** Copies the options of a connection or a pool. pg hides the password from copies. */
export function configOf(connection: PostgresConnection): pg.PoolConfig {
  if (typeof connection === 'string') return { connectionString: connection }
  return connection.password === undefined ? { ...connection } : { ...connection, password: connection.password }
}

const ignore = (): void => {}

/** Makes a pool. A lost idle connection is replaced when the next one is needed. */
export const makePool = (config: pg.PoolConfig): pg.Pool => new pg.Pool(config).on('error', ignore)

/**
 * Makes a class of clients with a statement timeout of `timeoutMs`. They send the setting with a statement, since
 * PgBouncer rejects a connection that begins with it.
 */
export function clientWithTimeout(timeoutMs: number): typeof pg.Client {
  class Client extends pg.Client {
    override connect(): Promise<pg.Client>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
      // The pool listens for errors once this is done. A connection that is lost earlier would end the process.
      this.on('error', ignore)
      const connected = super.connect().then(() => this.query(`SET statement_timeout = ${timeoutMs}`))
      if (callback === undefined) return connected.then(() => this)
      connected.then(() => (callback as () => void)(), callback)
      return undefined
    }
  }
  return Client
}

/**
 * Takes a client of a pool. A lost connection ends the process, unless there is a listener from the beginning. {@link
 * releaseClient} removes it.
 */
export function take(pool: pg.Pool): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (error !== undefined || client === undefined) return reject(error)
      client.on('error', ignore)
      resolve(client)
    })
  })
}

/**
 * Releases a client to its pool.
 * @param error closes the connection
 */
export function releaseClient(client: pg.PoolClient, error?: Error | boolean): void {
  client.off('error', ignore)
  client.release(error)
}
