import { Elysia } from 'elysia'
import { receiver } from './receiver.ts'
import { webhooks } from './webhooks.ts'

await receiver.ready()
const app = new Elysia().use(webhooks).listen(process.env.PORT ?? 3000)
console.log(`listening on ${app.server?.port}`)

process.once('SIGTERM', async () => {
  // Answers the deliveries in flight, and then waits up to 10 s for the handlers of accepted events.
  await app.stop()
  await receiver.close()
  process.exit()
})
