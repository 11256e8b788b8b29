import type pg from 'pg'

/** The problem of a transaction pooler, and its fix. */
export const poolerProblem =
  'a transaction pooler (PgBouncer, Supabase, Neon) is between this process and Postgres: set listen: false, or connect to ' +
  'Postgres directly or by a pooler in session mode'

/** Rounds of questions to a pooler whose mode is unclear. */
const maxRounds = 5

/**
 * Finds out whether two open connections reach sessions of their own. A transaction pooler gives a session to whoever asks
 * next, so both see the same one, or one of them sees another one later. The order finds a pooler that takes its sessions
 * in turn, and one that prefers the last.
 */
export async function findPooler(
  first: pg.ClientBase,
  second: pg.ClientBase,
): Promise<'none' | 'session' | 'transaction'> {
  for (let round = 1; round <= maxRounds; round++) {
    const [a, b] = [await sessionOf(first), await sessionOf(second)]
    const [laterB, laterA] = [await sessionOf(second), await sessionOf(first)]
    if (a === b || a !== laterA || b !== laterB) return 'transaction'
    if (isOwn(first, a) && isOwn(second, b)) return 'none'
  }
  return 'session'
}

async function sessionOf(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query('SELECT pg_backend_pid()::text AS pid')
  return rows[0].pid
}

/** Returns `true` if a client connected to that very session: a pooler makes up the id that it names at the start. */
const isOwn = (client: pg.ClientBase, session: string): boolean =>
  `${(client as { processID?: number }).processID}` === session

/**
 * Returns `true` for an error that a direct connection does not make: its prepared statement is gone, or another client's
 * is there.
 */
export const isRefusedByPooler = (error: unknown): boolean =>
  ['26000', '42P05'].includes(`${(error as { code?: unknown } | undefined)?.code}`)
