import { eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { pgTable, text } from 'drizzle-orm/pg-core'
import type { PoolClient } from 'pg'

const video = pgTable('video', { id: text().primaryKey(), title: text().notNull() })

export async function write(client: PoolClient, id: string, title: string): Promise<void> {
  const db = drizzle(client)
  await db.insert(video).values({ id, title: 'untitled' })
  await db.transaction((tx) => tx.update(video).set({ title }).where(eq(video.id, id)))
}
