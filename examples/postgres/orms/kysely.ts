import { Kysely, PostgresDialect } from 'kysely'
import { poolOf } from 'media-webhooks/inbox/postgres'
import type { PoolClient } from 'pg'

interface Tables {
  video: { id: string; title: string }
}

export async function write(client: PoolClient, id: string, title: string): Promise<void> {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: poolOf(client) }) })
  await db.insertInto('video').values({ id, title: 'untitled' }).execute()
  await db.transaction().execute((tx) => tx.updateTable('video').set({ title }).where('id', '=', id).execute())
}
