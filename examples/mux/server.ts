import express from 'express'
import { createReceiver, timestampedSignature } from 'media-webhooks'
import { expressHandler } from 'media-webhooks/express'
import { closeOnSignals } from 'media-webhooks/node'
import { mux } from './mux.ts'

const { MUX_SECRET = '', PORT = '3000', ENCODED_WITHIN = '2 h' } = process.env

const receiver = createReceiver({
  sender: mux,
  verify: timestampedSignature({ secret: MUX_SECRET, header: 'mux-signature' }),
})

receiver.on('video.asset.ready', async ({ mediaId, data }) => {
  console.log(`publish ${mediaId}: ${data.duration} s, asset ${data.id}`)
})
receiver.on('video.asset.errored', async ({ mediaId, data }) => {
  console.log(`tell the owner of ${mediaId}: ${data.errors?.messages.join(' ')}`)
})
// Runs if none of them comes in time. This inbox loses the deadline with the process; a durable inbox keeps it.
receiver.expect(
  'video.upload.created',
  {
    then: ['video.asset.ready', 'video.asset.errored', 'video.upload.cancelled', 'video.upload.errored'],
    within: ENCODED_WITHIN,
    name: 'encoded',
  },
  async ({ mediaId, dueAt }) => {
    console.log(`ask Mux about ${mediaId}, which was to be encoded by ${dueAt.toISOString()}`)
  },
)

const app = express()
// Mount the receiver before express.json(), so that it sees the exact bytes of the body.
app.post('/webhooks/mux', expressHandler(receiver))
app.use(express.json())

const server = app.listen(Number(PORT), () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`)
})

// On SIGTERM and SIGINT: answers the deliveries in flight, handles the accepted events, in at most 10 s, and exits.
closeOnSignals(server, receiver)
