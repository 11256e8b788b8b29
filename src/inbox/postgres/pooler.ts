import type pg from 'pg'

export const poolerProblem =
  'a transaction pooler (PgBouncer, Supabase, Neon) is between this process and Postgres: set listen: false, or connect to ' +
  'Postgres directly or through a pooler in session mode'

/** Probes of a pooler whose mode is unclear. */
const maxRounds = 5

/**
 * Probes whether two connections have separate sessions. Behind a transaction pooler they see the same one, or it
 * changes. The order of the queries catches poolers that rotate sessions, and those that prefer the last.
 */
export async function findPooler(
  first: pg.ClientBase,
  second: pg.ClientBase,
): Promise<'none' | 'session' | 'transaction'> {
  for (let round = 1; round <= maxRounds; round++) {
    const [a, b] = [await readSession(first), await readSession(second)]
    const [laterB, laterA] = [await readSession(second), await readSession(first)]
    if (a === b || a !== laterA || b !== laterB) return 'transaction'
    if (isOwn(first, a) && isOwn(second, b)) return 'none'
  }
  return 'session'
}

async function readSession(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query('SELECT pg_backend_pid()::text AS pid')
  return rows[0].pid
}

/** True if a client is directly connected to a session: a pooler announces a made-up process id. */
const isOwn = (client: pg.ClientBase, session: string): boolean =>
  `${(client as { processID?: number }).processID}` === session

/** True for errors that only a pooler causes: a prepared statement is gone, or another client's is there. */
export const isRefusedByPooler = (error: unknown): boolean =>
  ['26000', '42P05'].includes(`${(error as { code?: unknown } | undefined)?.code}`)
