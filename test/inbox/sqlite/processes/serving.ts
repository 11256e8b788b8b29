import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { nodeHandler } from '../../../../adapters/node.ts'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'

// A server over the file of an inbox. It prints its URL.
const [, , path = ''] = process.argv
const ignore = () => {}
const receiver = createReceiver({
  verify: unverified(),
  inbox: sqliteInbox({ path }),
  logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
})
// Handlers never end, so that nothing but the events is written.
receiver.onAny(() => new Promise(() => {}))
const server = createServer(nodeHandler(receiver))
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`))
// Its standard input ends with the process that started it.
process.stdin.resume().on('end', () => process.exit(1))
