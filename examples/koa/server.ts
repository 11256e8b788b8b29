import Router from '@koa/router'
import Koa from 'koa'
import { createReceiver, urlToken } from 'media-webhooks'
import { koaHandler } from 'media-webhooks/koa'
import { closeOnSignals } from 'media-webhooks/node'

const { WEBHOOK_TOKEN = '', PORT = '3000' } = process.env

const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }) })

receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
  console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
})
receiver.on('encoding.failed', async ({ mediaId, title }) => {
  console.log(`tell the owner that ${title ?? mediaId} failed`)
})

const router = new Router()
// Body parsers come after it, so that the receiver sees the exact bytes of the body.
router.all('/webhooks/media', koaHandler(receiver))

const app = new Koa()
app.use(router.routes())

const server = app.listen(Number(PORT), () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`)
})

// On SIGTERM and SIGINT: answers the deliveries in flight, handles the accepted events, in at most 10 s, and exits.
closeOnSignals(server, receiver)
