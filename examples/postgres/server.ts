import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import express from 'express'
import { createReceiver, urlToken } from 'media-webhooks'
import { expressHandler } from 'media-webhooks/express'
import { postgresInbox } from 'media-webhooks/inbox/postgres'
import { closeOnSignals } from 'media-webhooks/node'
import pg from 'pg'
import { kyselyOn } from './kysely-on.ts'
import { createTables, type Tables, video } from './video.ts'

const { WEBHOOK_TOKEN = '', DATABASE_URL = 'postgres://postgres@127.0.0.1:5432/postgres', PORT = '3000' } = process.env

// Your application's pool: a client for each event handled at a time, and some for other queries.
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 20 })
pool.on('error', (error) => console.error('an idle connection was lost', error.message))
await pool.query(createTables)

// Start as many processes as you like. Each accepts deliveries and handles events from all of them.
const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }), inbox: postgresInbox({ pool }) })

// A handler's writes with the client are committed together with the record that it finished.
receiver.on('encoding.finished', function publish({ mediaId, title, qualities }, { transaction }) {
  return transaction(async (client) => {
    const row = { title, qualities: [...qualities], isPublished: true }
    const db = drizzle(client)
    await db
      .insert(video)
      .values({ mediaId, ...row })
      .onConflictDoUpdate({ target: video.mediaId, set: row })
    const { rows } = await db.execute(sql`SELECT count(*) AS count FROM ${video} WHERE ${video.isPublished}`)
    console.log(`${rows[0]?.['count']} videos are published`)
  })
})

// The same with Kysely.
receiver.on('encoding.failed', function recordFailure({ mediaId, title }, { transaction }) {
  return transaction(async (client) => {
    const failure = { media_id: mediaId, title: title ?? null }
    await kyselyOn<Tables>(client).insertInto('failure').values(failure).execute()
  })
})

// Rejects, with the reason, if the inbox cannot use the database.
await receiver.ready()

const app = express()
app.post('/webhooks/media', expressHandler(receiver))
const server = app.listen(Number(PORT), () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`)
})

// On SIGTERM and SIGINT, finishes the running handlers. Waiting events stay in Postgres, for another process or the next start.
closeOnSignals(server, receiver, { onClosed: () => pool.end() })
