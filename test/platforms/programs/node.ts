import { createServer } from 'node:http'
import { closeServer, nodeHandler } from '../../../adapters/node.ts'
import { makeReceiver } from './receiver.ts'

const receiver = makeReceiver()
const { PORT } = process.env
const server = createServer(nodeHandler(receiver)).listen(Number(PORT), '127.0.0.1', () => {
  console.log(`listening on ${PORT}`)
})
process.once('SIGTERM', async () => {
  await closeServer(server, receiver)
  process.exit()
})
