import { Elysia } from 'elysia'
import { createReceiver, urlToken } from 'media-webhooks'
import { fetchHandler } from 'media-webhooks/fetch'
import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
import { handlers } from './handlers.ts'

const { WEBHOOK_TOKEN = '', PORT = '3000', INBOX_PATH = 'inbox.db' } = process.env

const inbox = sqliteInbox({ path: INBOX_PATH })
const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }), inbox, handlers })
await receiver.ready()

const handler = fetchHandler(receiver)
// Without `parse: 'none'`, Elysia would read the body first.
const app = new Elysia().all('/webhooks/media', ({ request }) => handler(request), { parse: 'none' }).listen(PORT)
console.log(`listening on ${app.server?.port}`)

process.once('SIGTERM', async () => {
  // Answers the deliveries in flight, and then waits up to 10 s for the handlers of accepted events.
  await app.stop()
  await receiver.close()
  process.exit()
})
