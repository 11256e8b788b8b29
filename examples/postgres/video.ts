import { boolean, pgTable, text } from 'drizzle-orm/pg-core'

/** The handlers' table, for Drizzle. */
export const video = pgTable('video', {
  mediaId: text('media_id').primaryKey(),
  title: text(),
  qualities: text().array().notNull(),
  isPublished: boolean('is_published').notNull(),
})

/** Failed uploads, for Kysely. No unique column: a second run would add a second row. */
export interface Tables {
  failure: { media_id: string; title: string | null }
}

/** In an application, migrations do this. */
export const createTables = `
  CREATE TABLE IF NOT EXISTS video (
    media_id text PRIMARY KEY, title text, qualities text[] NOT NULL, is_published boolean NOT NULL);
  CREATE TABLE IF NOT EXISTS failure (media_id text NOT NULL, title text)`
