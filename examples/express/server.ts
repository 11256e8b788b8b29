import express from 'express'
import { createReceiver, urlToken } from 'media-webhooks'
import { expressHandler } from 'media-webhooks/express'
import { closeOnSignals } from 'media-webhooks/node'

const { WEBHOOK_TOKEN = '', PORT = '3000', ENCODED_WITHIN = '2 h' } = process.env

const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }) })

receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
  console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
})
receiver.on('encoding.failed', async ({ mediaId, title }) => {
  console.log(`tell the owner that ${title ?? mediaId} failed`)
})
// Runs if neither comes in time. This inbox loses the deadline with the process; a durable inbox keeps it.
receiver.expect(
  'file.received',
  { then: ['encoding.finished', 'encoding.failed'], within: ENCODED_WITHIN, name: 'encoded' },
  async ({ mediaId, dueAt }) => {
    console.log(`ask the service about ${mediaId}, which was to be encoded by ${dueAt.toISOString()}`)
  },
)

const app = express()
// Mount the receiver before express.json(), so that it sees the exact bytes of the body.
app.post('/webhooks/media', expressHandler(receiver))
app.use(express.json())

const server = app.listen(Number(PORT), () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`)
})

// On SIGTERM and SIGINT: answers the deliveries in flight, handles the accepted events, in at most 10 s, and exits.
closeOnSignals(server, receiver)
