import express from 'express'
import { createReceiver, urlToken } from 'media-webhooks'
import { expressHandler } from 'media-webhooks/express'

const { WEBHOOK_TOKEN = '', PORT = '3000' } = process.env

const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }) })

receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
  console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
})
receiver.on('encoding.failed', async ({ mediaId, title }) => {
  console.log(`tell the owner that ${title ?? mediaId} failed`)
})

const app = express()
// Mount the receiver before express.json(), so that it sees the exact bytes of the body.
app.post('/webhooks/media', expressHandler(receiver))
app.use(express.json())

const server = app.listen(Number(PORT), () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`)
})

process.once('SIGTERM', async () => {
  server.close()
  // Handles the acknowledged events, for at most 10 s, and returns the ones that are left.
  const { unfinished } = await receiver.close()
  for (const { event } of unfinished) console.error(`not handled: ${event.key}`)
  process.exit(unfinished.length === 0 ? 0 : 1)
})
