import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { clientClass, makePool } from '../../../src/inbox/postgres/pool.ts'

/** "AuthenticationOk" and "ReadyForQuery" of the protocol: the client may send its first statement. */
const ready = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49])

test('a Postgres that hangs as soon as it has accepted a connection makes the statement fail, and no more', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write(ready))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const options = { host: '127.0.0.1', port, user: 'user', ssl: false, query_timeout: 100 }
  const pool = makePool({ ...options, Client: clientClass({ config: {} }) })
  onTestFinished(() => pool.end())
  const uncaught: unknown[] = []
  const listener = (error: unknown) => void uncaught.push(error)
  process.prependListener('uncaughtException', listener)
  onTestFinished(() => void process.off('uncaughtException', listener))
  await expect(pool.query('SELECT 1')).rejects.toThrow(/timeout/)
  expect(uncaught).toEqual([])
})
