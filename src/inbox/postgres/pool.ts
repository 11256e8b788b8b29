import pg from 'pg'

const ignore = (): void => {}

/** Listens for the errors of a pool: without a listener, a lost idle connection would end the process. The pool replaces it. */
export const guardPool = (pool: pg.Pool): pg.Pool =>
  pool.listeners('error').includes(ignore) ? pool : pool.on('error', ignore)

export const makePool = (config: pg.PoolConfig): pg.Pool => guardPool(new pg.Pool(config))

/** Settings that connections begin with. They may be set after a pool was made. */
export interface Pinned {
  config: pg.ClientConfig
}

/** Makes a class of clients that begin with pinned settings. */
export function clientClass(pinned: Pinned): typeof pg.Client {
  return class Client extends pg.Client {
    constructor(config: pg.ClientConfig) {
      // pg hides the password from copies.
      super({ ...config, ...(config.password !== undefined && { password: config.password }), ...pinned.config })
      // The pool listens for errors once the client is connected. A connection that is lost earlier would end the process.
      this.on('error', ignore)
    }
  }
}

/**
 * The settings of the inbox's own connections, as start-up parameters: those that change what its statements mean, and a
 * limit for statements that outlive their client.
 */
export const startUp = (
  { options = process.env['PGOPTIONS'] ?? '' }: pg.PoolConfig,
  timeoutMs: number,
): pg.ClientConfig => ({
  statement_timeout: timeoutMs,
  options: `${options} -c DateStyle=ISO -c array_nulls=on -c standard_conforming_strings=on -c extra_float_digits=1 -c default_transaction_isolation=read\\ committed`,
})

/**
 * Takes a client of a pool. A lost connection ends the process, unless there is a listener from the beginning. {@link
 * releaseClient} removes it.
 */
export function takeClient(pool: pg.Pool): Promise<pg.PoolClient> {
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
