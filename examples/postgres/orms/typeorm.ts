import { poolOf } from 'media-webhooks/inbox/postgres'
import type { PoolClient } from 'pg'
import { DataSource, EntitySchema } from 'typeorm'

interface Video {
  id: string
  title: string
}

const Video = new EntitySchema<Video>({
  name: 'video',
  columns: { id: { type: 'text', primary: true }, title: { type: 'text' } },
})

/** What TypeORM uses of `pg`. */
const driverOn = (client: PoolClient) => ({
  Pool: function Pool() {
    return poolOf(client)
  },
})

export async function write(client: PoolClient, id: string, title: string): Promise<void> {
  const db = await new DataSource({ type: 'postgres', driver: driverOn(client), entities: [Video] }).initialize()
  await db.getRepository(Video).insert({ id, title: 'untitled' })
  await db.transaction((tx) => tx.update(Video, { id }, { title }))
  await db.destroy()
}
