import pg from 'pg'

/** The URL of a database, or the options of a pool. */
export type PostgresConnection = string | pg.PoolConfig

/** Copies the options of a connection or a pool. pg hides the password from copies. */
export function configOf(connection: PostgresConnection): pg.PoolConfig {
  if (typeof connection === 'string') return { connectionString: connection }
  return connection.password === undefined ? { ...connection } : { ...connection, password: connection.password }
}

/** Makes a pool. An idle connection that is lost is replaced when the next one is needed. */
export const makePool = (config: pg.PoolConfig): pg.Pool => new pg.Pool(config).on('error', ignore)

/**
 * Takes a client of a pool. A connection that is lost ends the process, unless there is a listener from the beginning.
 * {@link giveBack} removes it.
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
 * Gives a client back to its pool.
 * @param error closes the connection
 */
export function giveBack(client: pg.PoolClient, error?: Error | boolean): void {
  client.off('error', ignore)
  client.release(error)
}

const ignore = (): void => {}
