import knex from 'knex'
import type { PoolClient } from 'pg'

// It has no connection of its own: each query names the client.
const db = knex({ client: 'pg' })

export async function write(client: PoolClient, id: string, title: string): Promise<void> {
  await db('video').connection(client).insert({ id, title: 'untitled' })
  await db.transaction((tx) => tx('video').where({ id }).update({ title }), { connection: client })
}
