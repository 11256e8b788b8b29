import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { type Context, Hono } from 'hono'
import { path } from '../deliveries.ts'
import { answerOf, run, statusOf, type Taken, take } from '../pipeline.ts'

const limit = 64 * 1024

/** Writes the answer. */
type Answer = (res: ServerResponse, taken: Taken) => void

const withBody: Answer = (res, taken) => {
  const text = JSON.stringify(answerOf(taken))
  // Without content-length the answer would be chunked, which costs a third more.
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  res.writeHead(statusOf(taken), headers).end(text)
}

/** Answers a success without a body: a sender needs no more. */
const withoutBody: Answer = (res, taken) =>
  statusOf(taken) === 200 ? res.writeHead(200, { 'content-length': 0 }).end() : withBody(res, taken)

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

const listener = (answer: Answer) => (req: IncomingMessage, res: ServerResponse) => {
  receive(req, res, answer).catch(() => res.destroy())
}

async function receive(req: IncomingMessage, res: ServerResponse, answer: Answer): Promise<void> {
  if (req.method !== 'POST' || req.url !== path) return void res.writeHead(404).end()
  const body = await readBody(req)
  if (!body) return void res.writeHead(413).end()
  const taken = take(body, req.headers['x-signature'] as string | undefined)
  answer(res, taken)
  run(taken)
}

export const onNode = () => createServer(listener(withBody))
export const onNodeWithoutBody = () => createServer(listener(withoutBody))

/** Reads and answers with what Express offers for it. */
export function onExpress() {
  const app = express()
  app.post(path, express.raw({ type: 'application/json', limit }), (req, res) => {
    const taken = take(req.body as Buffer, req.get('x-signature'))
    res.status(statusOf(taken)).json(answerOf(taken))
    run(taken)
  })
  return createServer(app)
}

export const onLeanExpress = () => leanExpress(withBody)
export const onLeanExpressWithoutBody = () => leanExpress(withoutBody)

/** Reads and answers by itself: Express only routes. */
function leanExpress(answer: Answer) {
  const app = express()
  app.post(path, listener(answer))
  return createServer(app)
}

/** Stands in front of Express, which only gets other requests. */
export function beforeExpress() {
  const app = express()
  const webhooks = listener(withBody)
  return createServer((req, res) => (req.url?.startsWith(path) ? webhooks(req, res) : app(req, res)))
}

export const onHono = () => honoServer((c, taken) => c.json(answerOf(taken), statusOf(taken)))
export const onHonoWithoutBody = () =>
  honoServer((c, taken) => (statusOf(taken) === 200 ? c.body(null, 200) : c.json(answerOf(taken), statusOf(taken))))

function honoServer(answer: (c: Context, taken: Taken) => Response) {
  const app = new Hono()
  app.post(path, async (c) => {
    const body = Buffer.from(await c.req.arrayBuffer())
    if (body.length > limit) return c.body(null, 413)
    const taken = take(body, c.req.header('x-signature'))
    // Hono sends the answer after this function returns.
    setImmediate(run, taken)
    return answer(c, taken)
  })
  return createServer(getRequestListener(app.fetch))
}
