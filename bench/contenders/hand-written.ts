import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { path } from '../deliveries.ts'
import { run, statusOf, take } from '../pipeline.ts'

const limit = 64 * 1024

/** Reads the whole body. Resolves with `undefined` when it is larger than the limit. */
function readBody(req: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) resolve(undefined)
      else chunks.push(chunk)
    })
    req.on('end', () => resolve(Buffer.concat(chunks)))
    req.on('error', reject)
  })
}

async function receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method !== 'POST' || req.url !== path) return void res.writeHead(404).end()
  const body = await readBody(req)
  if (!body) return void res.writeHead(413).end()
  const taken = take(body, req.headers['x-signature'] as string | undefined)
  const status = statusOf(taken)
  const text = JSON.stringify({ status: status === 200 ? 'accepted' : 'rejected' })
  // Without content-length the answer would be chunked, which costs a third more.
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text)
  run(taken)
}

export const node = () =>
  createServer((req, res) => {
    receive(req, res).catch(() => res.destroy())
  })

export function onExpress() {
  const app = express()
  app.post(path, express.raw({ type: 'application/json', limit }), (req, res) => {
    const taken = take(req.body as Buffer, req.get('x-signature'))
    const status = statusOf(taken)
    res.status(status).json({ status: status === 200 ? 'accepted' : 'rejected' })
    run(taken)
  })
  return createServer(app)
}

export function onHono() {
  const app = new Hono()
  app.post(path, async (c) => {
    const body = Buffer.from(await c.req.arrayBuffer())
    if (body.length > limit) return c.body(null, 413)
    const taken = take(body, c.req.header('x-signature'))
    const status = statusOf(taken)
    // Hono sends the answer after this function returns.
    setImmediate(run, taken)
    return c.json({ status: status === 200 ? 'accepted' : 'rejected' }, status)
  })
  return createServer(getRequestListener(app.fetch))
}
