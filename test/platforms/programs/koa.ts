import Router from '@koa/router'
import Koa from 'koa'
import { koaHandler } from '../../../adapters/koa.ts'
import { closeOnSignals } from '../../../adapters/node.ts'
import { makeReceiver } from './receiver.ts'

const receiver = makeReceiver()
const app = new Koa()
// It would print every connection that the sender cuts.
app.silent = true
app.use(new Router().all('/webhooks/media', koaHandler(receiver)).routes())

const { PORT } = process.env
const server = app.listen(Number(PORT), '127.0.0.1', () => console.log(`listening on ${PORT}`))
closeOnSignals(server, receiver)
