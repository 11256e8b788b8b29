import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { path } from '../deliveries.ts'

/** Measures the framework alone: it reads the body and answers 200. */
export const node = () =>
  createServer((req, res) => {
    req.on('data', () => {})
    req.on('end', () => res.writeHead(200, { 'content-length': 0 }).end())
  })

export function onExpress() {
  const app = express()
  app.post(path, express.raw({ type: 'application/json' }), (_req, res) => {
    res.status(200).end()
  })
  return createServer(app)
}

export function onHono() {
  const app = new Hono()
  app.post(path, async (c) => {
    await c.req.arrayBuffer()
    return c.body(null, 200)
  })
  return createServer(getRequestListener(app.fetch))
}
