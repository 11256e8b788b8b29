import express from 'express'
import { createReceiver, urlToken } from 'media-webhooks'
import { expressHandler } from 'media-webhooks/express'
import { health } from 'media-webhooks/health'
import { postgresInbox } from 'media-webhooks/inbox/postgres'
import { closeOnSignals } from 'media-webhooks/node'
import { openTelemetry } from 'media-webhooks/opentelemetry'

const { WEBHOOK_TOKEN = '', DATABASE_URL = '', PORT = '3000' } = process.env

const receiver = createReceiver({
  verify: urlToken({ secret: WEBHOOK_TOKEN }),
  inbox: postgresInbox({ connection: DATABASE_URL }),
  telemetry: openTelemetry(),
})
receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
  console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
})

const { live, ready } = health(receiver)
const app = express()
app.get('/live', live.node)
app.get('/ready', ready.node)
app.post('/webhooks/media', expressHandler(receiver))

const server = app.listen(Number(PORT), () => console.log(`listening on ${PORT}`))
server.keepAliveTimeout = 65_000 // longer than the load balancer keeps an idle connection
closeOnSignals(server, receiver, { timeoutMs: 20_000 })
