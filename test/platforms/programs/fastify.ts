import fastify from 'fastify'
import { fastifyReceiver } from '../../../adapters/fastify.ts'
import { closeOnSignals } from '../../../adapters/node.ts'
import { makeReceiver } from './receiver.ts'

// Fastify would answer 503 to deliveries that arrive while it closes, and some senders never send them again.
const app = fastify({ return503OnClosing: false })
const receiver = makeReceiver()
app.register(fastifyReceiver, { receiver, url: '/webhooks/media' })

const { PORT } = process.env
await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`listening on ${PORT}`)
closeOnSignals(app, receiver)
