import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { createReceiver, hmacSignature } from 'media-webhooks'
import { honoHandler } from 'media-webhooks/hono'
import { closeOnSignals } from 'media-webhooks/node'

const { WEBHOOK_SECRET = '', PORT = '3000' } = process.env

const receiver = createReceiver({
  verify: hmacSignature({ secret: WEBHOOK_SECRET, header: 'x-signature', prefix: 'sha256=' }),
})

receiver.on('partial.finished', async ({ mediaId, quality }) => {
  console.log(`${mediaId} can be watched in ${quality}`)
})
receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
  console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
})

const app = new Hono()
app.post('/webhooks/media', honoHandler(receiver))

const server = serve({ fetch: app.fetch, port: Number(PORT) }, ({ port }) => console.log(`listening on ${port}`))

// On SIGTERM and SIGINT: answers the deliveries in flight, handles the accepted events, in at most 10 s, and exits.
closeOnSignals(server, receiver)
