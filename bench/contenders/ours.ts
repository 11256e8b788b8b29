import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import type { Receiver } from '../../src/index.ts'
import { path } from '../deliveries.ts'
import { durableReceiver, expressHandler, honoHandler, nodeHandler, postgresReceiver, receiver } from '../ours.ts'

export const onNode = () => createServer(nodeHandler(receiver()))

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
