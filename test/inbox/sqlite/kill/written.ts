import { openDatabase } from '../../../../src/inbox/sqlite/driver.ts'

/** Opens the table that handlers write to, in the file of the inbox. It has no unique index: a second run adds a row. */
export function openWritten(path: string) {
  const database = openDatabase(path)
  database.exec('PRAGMA busy_timeout = 5000; CREATE TABLE IF NOT EXISTS written (media TEXT NOT NULL)')
  const insert = database.prepare('INSERT INTO written VALUES (?)')
  const counts = database.prepare('SELECT media, count(*) AS rows FROM written GROUP BY media')
  return {
    database,
    insert: (mediaId: string) => void insert.run(mediaId),
    /** Counts the rows of each media item. */
    counts: () => new Map((counts.all() as { media: string; rows: number }[]).map(({ media, rows }) => [media, rows])),
  }
}
