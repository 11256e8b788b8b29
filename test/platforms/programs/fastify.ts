import fastify from 'fastify'
import { fastifyReceiver } from '../../../adapters/fastify.ts'
import { makeReceiver } from './receiver.ts'

// Fastify would answer 503 to deliveries that arrive while it closes, and some senders never send them again.
const app = fastify({ return503OnClosing: false })
app.register(fastifyReceiver, { receiver: makeReceiver(), url: '/webhooks/media' })

const { PORT } = process.env
await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`listening on ${PORT}`)
process.once('SIGTERM', async () => {
  await app.close()
  process.exit()
})
