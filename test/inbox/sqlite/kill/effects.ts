import Libsql from 'libsql'

/** One run of a handler, to its end. */
export interface Effect {
  readonly key: string
  readonly mediaId: string
  readonly handler: string
  readonly pid: number
}

/** Opens the effects of handlers, in a database of their own that outlives the process. */
export function openEffects(path: string) {
  const database = new Libsql(path)
  // The operating system still holds what a killed process has written.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA busy_timeout = 5000')
  database.exec('CREATE TABLE IF NOT EXISTS effect (key TEXT, mediaId TEXT, handler TEXT, pid INTEGER)')
  const insert = database.prepare('INSERT INTO effect VALUES (?, ?, ?, ?)')
  return {
    record: (effect: Effect) => void insert.run(effect.key, effect.mediaId, effect.handler, effect.pid),
    all: () => database.prepare('SELECT * FROM effect').all() as Effect[],
    close: () => database.close(),
  }
}
