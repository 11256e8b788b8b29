import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { serve } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { expressHandler } from '../../../adapters/express.ts'
import { fastifyReceiver } from '../../../adapters/fastify.ts'
import { honoHandler } from '../../../adapters/hono.ts'
import { koaHandler } from '../../../adapters/koa.ts'
import { type ClosableServer, closeOnSignals, nodeHandler } from '../../../adapters/node.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, type Logger, memoryInbox, type Receiver, unverified } from '../../../src/index.ts'
import { fastify4 } from '../../support/mounts.ts'

// A server that closes on signals. What it prints tells the test how far it is.

const { FRAMEWORK = 'node', INBOX_PATH, HANDLER_MS = '0', TIMEOUT_MS = '10000', CASE, HANDLED = '' } = process.env

const print: Logger = {
  debug() {},
  info: (details, message) => console.log('info', message, JSON.stringify(details)),
  warn: (details, message) => console.log('warn', message, JSON.stringify(details)),
  error: (details, message) => console.log('error', message, JSON.stringify(details)),
}

const receiver = createReceiver({
  verify: unverified(),
  inbox: INBOX_PATH === undefined ? memoryInbox() : sqliteInbox({ path: INBOX_PATH }),
  ...(CASE === 'logger' && { logger: print }),
})
receiver.onAny(async ({ mediaId }) => {
  console.log(`begun ${mediaId}`)
  await new Promise((resolve) => setTimeout(resolve, Number(HANDLER_MS)))
  appendFileSync(HANDLED, `${mediaId}\n`)
})

const open = { port: 0, host: '127.0.0.1' }

const inFastify =
  (create: typeof fastify) =>
  async (mounted: Receiver): Promise<[ClosableServer, () => number]> => {
    const app = create()
    // Its own limit would end the handler: the one of closeOnSignals counts.
    app.register(fastifyReceiver, { receiver: mounted, url: '/', closeTimeoutMs: 0 })
    app.addHook('onClose', async () => console.log('the hook has run'))
    const url = await app.listen(open)
    return [app, () => Number(new URL(url).port)]
  }

const portOf = (server: { address(): unknown }) => () => (server.address() as { port: number }).port

const frameworks: Record<string, (mounted: Receiver) => Promise<[ClosableServer, () => number]>> = {
  async node(mounted) {
    const server = createServer(nodeHandler(mounted)).listen(open)
    return [server, portOf(server)]
  },
  async express(mounted) {
    const server = express().post('/', expressHandler(mounted)).listen(0, open.host)
    return [server, portOf(server)]
  },
  async koa(mounted) {
    const server = new Koa().use(koaHandler(mounted)).listen(open)
    return [server, portOf(server)]
  },
  async hono(mounted) {
    const server = serve({ fetch: new Hono().post('/', honoHandler(mounted)).fetch, port: 0, hostname: open.host })
    return [server, portOf(server)]
  },
  fastify5: inFastify(fastify),
  fastify4: inFastify(fastify4),
}

const [server, port] = await (frameworks[FRAMEWORK] as NonNullable<(typeof frameworks)[string]>)(receiver)
const timeoutMs = Number(TIMEOUT_MS)

/** Something that takes 300 ms to close. */
const slow = {
  close(closed: () => void) {
    setTimeout(() => {
      console.log('the slow server has closed')
      closed()
    }, 300)
  },
}
const nothing = { close: async () => ({ unfinished: [] }) }

const cases: Record<string, () => void> = {
  standard: () => closeOnSignals(server, receiver, { timeoutMs }),
  logger: () => closeOnSignals(server, receiver, { timeoutMs }),
  'the close fails': () =>
    closeOnSignals(server, { ...receiver, close: () => Promise.reject(new Error('the disk is full')) }, { timeoutMs }),
  'the close never ends': () =>
    closeOnSignals(server, { ...receiver, close: () => new Promise(() => {}) }, { timeoutMs: 0 }),
  'onClosed runs': () =>
    closeOnSignals(server, receiver, {
      async onClosed({ unfinished }) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        console.log(`the pool has ended after ${unfinished.length} unfinished`)
      },
    }),
  'onClosed fails': () =>
    closeOnSignals(server, receiver, {
      onClosed() {
        throw new Error('the pool is gone')
      },
    }),
  'another exit code'() {
    process.exitCode = 3
    closeOnSignals(server, receiver, { timeoutMs })
  },
  'several receivers': () => closeOnSignals(slow, [nothing, receiver], { timeoutMs }),
  'several calls'() {
    closeOnSignals(server, nothing)
    closeOnSignals(slow, receiver, { timeoutMs })
  },
  removed: () => closeOnSignals(server, receiver)(),
  'removed and added again'() {
    closeOnSignals(server, { close: () => Promise.reject(new Error('the old one')) })()
    closeOnSignals(server, receiver, { timeoutMs })
  },
}
cases[CASE ?? 'standard']?.()

if (!('listening' in server) || server.listening === true) console.log(`listening on ${port()}`)
else (server as unknown as NodeJS.EventEmitter).once('listening', () => console.log(`listening on ${port()}`))
