import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import type { Receiver } from '../../src/index.ts'
import { path } from '../deliveries.ts'
import {
  durableReceiver,
  expressHandler,
  honoHandler,
  nodeHandler,
  postgresReceiver,
  receiver,
  receiverWith,
} from '../ours.ts'
import { handle } from '../tally.ts'

export const node = () => createServer(nodeHandler(receiver()))

/** Makes a server whose handlers take 5 s. */
export const slowNode = () =>
  createServer(
    nodeHandler(
      receiverWith(async (event) => {
        await handle(event.mediaId)
        await pause(5_000)
      }),
    ),
  )

export const onExpress = () => expressServer(receiver())
export const onExpressDurably = () => expressServer(durableReceiver())
export const onExpressInPostgres = async () => expressServer(await postgresReceiver())

function expressServer(receiver: Receiver) {
  const app = express()
  app.post(path, expressHandler(receiver))
  return createServer(app)
}

/** Mounts the receiver in front of Express, which is faster. */
export function beforeExpress() {
  const app = express()
  const webhooks = nodeHandler(receiver())
  return createServer((req, res) => (req.url?.startsWith(path) ? webhooks(req, res) : app(req, res)))
}

export const onHono = () => honoServer(receiver())
export const onHonoDurably = () => honoServer(durableReceiver())

function honoServer(receiver: Receiver) {
  const app = new Hono()
  app.post(path, honoHandler(receiver))
  return createServer(getRequestListener(app.fetch))
}
