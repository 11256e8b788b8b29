import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createEmulator } from '../../../src/service/emulator/index.ts'

// Closes an emulator while a media item, a delivery, an event stream and a call of settled are unfinished. The process
// then has to end by itself.
const emulator = await createEmulator()
const receiver = createServer().listen(0, '127.0.0.1').unref()
await once(receiver, 'listening')
const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
const arrived = new Promise((resolve) => receiver.once('request', resolve))

const { body } = await fetch(`${emulator.url}/emulator/events`)
await fetch(`${emulator.url}/api/webhooks`, {
  method: 'POST',
  headers: { authorization: `Bearer ${emulator.credentials.accessToken}`, 'content-type': 'application/json' },
  body: JSON.stringify({ url, file_received: true, encoding_started: true }),
})
emulator.addMedia()
const settled = emulator.settled().catch(({ code }) => code)
await arrived
await emulator.close()
for await (const _ of body as AsyncIterable<Uint8Array>) {
  // The stream ends.
}
console.log(await settled)
