import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely'

/** Makes a Kysely on one client that is in a transaction. Don't call its `transaction()`. */
export function kyselyOn<Tables>(client: object): Kysely<Tables> {
  const pooled = client as PostgresPoolClient
  // The client goes back to its pool when the transaction ends, not when Kysely has run a query.
  const only: PostgresPoolClient = { query: pooled.query.bind(client), release() {} }
  const pool = { connect: async () => only, end: async () => {} }
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
}
