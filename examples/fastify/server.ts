import fastify from 'fastify'
import { createReceiver, urlToken } from 'media-webhooks'
import { fastifyReceiver } from 'media-webhooks/fastify'
import { closeOnSignals } from 'media-webhooks/node'

const { WEBHOOK_TOKEN = '', PORT = '3000' } = process.env

const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }) })

receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
  console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
})
receiver.on('encoding.failed', async ({ mediaId, title }) => {
  console.log(`tell the owner that ${title ?? mediaId} failed`)
})

// By default, Fastify answers 503 while it closes, and some senders never send such a delivery again.
const app = fastify({ return503OnClosing: false })
app.register(fastifyReceiver, { receiver, url: '/webhooks/media' })

// On SIGTERM and SIGINT: answers the deliveries in flight, handles the accepted events, in at most 10 s, and exits.
closeOnSignals(app, receiver)

const address = await app.listen({ port: Number(PORT) })
console.log(`listening on ${new URL(address).port}`)
