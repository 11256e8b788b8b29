import express from 'express'
import { createReceiver, urlToken } from 'media-webhooks'
import { expressHandler } from 'media-webhooks/express'
import { postgresInbox } from 'media-webhooks/inbox/postgres'
import { closeOnSignals } from 'media-webhooks/node'
import pg from 'pg'
import { write as drizzle } from './orms/drizzle.ts'
import { write as knex } from './orms/knex.ts'
import { write as kysely } from './orms/kysely.ts'
import { write as prisma } from './orms/prisma.ts'
import { write as typeorm } from './orms/typeorm.ts'

const { WEBHOOK_TOKEN = '', DATABASE_URL = 'postgres://postgres@127.0.0.1:5432/postgres', PORT = '3000' } = process.env

// Your application's pool: a client for each event handled at a time, and some for other queries.
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 20 })
pool.on('error', (error) => console.error('an idle connection was lost', error.message))
// In an application, migrations do this.
await pool.query('CREATE TABLE IF NOT EXISTS video (id text PRIMARY KEY, title text NOT NULL)')

// Start as many processes as you like. Each accepts deliveries and handles events from all of them.
const receiver = createReceiver({
  verify: urlToken({ secret: WEBHOOK_TOKEN }),
  inbox: postgresInbox({ pool }),
  retry: { attempts: 3, baseMs: 100 },
})

// What a handler writes with the client is committed together with the record that it finished.
for (const [name, write] of Object.entries({ drizzle, knex, kysely, prisma, typeorm }))
  receiver.on(
    'encoding.finished',
    ({ mediaId, title }, { transaction }) =>
      transaction(async (client) => {
        await write(client, `${mediaId} by ${name}`, title ?? 'no title')
        // Undoes what was written.
        if (title === undefined) throw new Error('a video needs a title')
      }),
    { name },
  )

// Rejects, with the reason, if the inbox cannot use the database.
await receiver.ready()

const app = express()
app.post('/webhooks/media', expressHandler(receiver))
const server = app.listen(Number(PORT), () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`)
})

// On SIGTERM and SIGINT, finishes the running handlers. Waiting events stay in Postgres, for another process or the next start.
closeOnSignals(server, receiver, { onClosed: () => pool.end() })
