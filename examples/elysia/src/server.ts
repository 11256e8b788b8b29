import { Elysia } from 'elysia'
import { closeOnSignals } from 'media-webhooks/node'
import { receiver } from './receiver.ts'
import { webhooks } from './webhooks.ts'

await receiver.ready()
const app = new Elysia().use(webhooks).listen(process.env.PORT ?? 3000)
console.log(`listening on ${app.server?.port}`)

// On SIGTERM and SIGINT: answers the deliveries in flight, handles the accepted events, in at most 10 s, and exits.
closeOnSignals({ close: (closed) => app.stop().then(closed, closed) }, receiver)
