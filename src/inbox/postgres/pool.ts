import pg from 'pg'

const ignore = (): void => {}

/** Listens for errors, so that a lost idle connection doesn't end the process. The pool replaces it. */
export const guardPool = (pool: pg.Pool): pg.Pool =>
  pool.listeners('error').includes(ignore) ? pool : pool.on('error', ignore)

/**
 * The server that options lead to, as `db.example:5432`. `undefined` if they give a stream, or a URL that may not be read as
 * its author meant: part of a password may then be taken for the host.
 */
export function placeOf(config: pg.PoolConfig): string | undefined {
  const { connectionString = '', stream } = config
  if (stream !== undefined || /^[a-z]+:\/\/[^/?#]*[/?#].*@/is.test(connectionString)) return undefined
  try {
    const { host, port } = new pg.Client(config)
    return host.startsWith('/') ? host : `${host}:${port}`
  } catch {
    return undefined
  }
}

export const makePool = (config: pg.PoolConfig): pg.Pool => guardPool(new pg.Pool(config))

/** Settings that connections start with. May be filled in after the pool is made. */
export interface Pinned {
  config: pg.ClientConfig
}

/** Makes a client class that starts with pinned settings. */
export function clientClass(pinned: Pinned): typeof pg.Client {
  return class Client extends pg.Client {
    constructor(config: pg.ClientConfig) {
      // pg hides the password from copies.
      super({ ...config, ...(config.password !== undefined && { password: config.password }), ...pinned.config })
      // The pool listens once the client is connected. A connection lost before that would end the process.
      this.on('error', ignore)
    }
  }
}

/** Takes a client, with an error listener, so that a lost connection doesn't end the process. */
export function takeClient(pool: pg.Pool): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (error !== undefined || client === undefined) return reject(error)
      client.on('error', ignore)
      resolve(client)
    })
  })
}

/** Releases a client to its pool. An error closes its connection. */
export function releaseClient(client: pg.PoolClient, error?: Error | boolean): void {
  client.off('error', ignore)
  client.release(error)
}
