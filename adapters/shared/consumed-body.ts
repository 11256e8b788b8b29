import type { IncomingMessage } from 'node:http'

// How to keep the body unread, or its bytes, in each framework. Logged with `body_consumed`.

const inExpress =
  'mount the receiver before express.json(), or put express.raw({ type: "*/*" }) on its path before express.json(), or ' +
  'write express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) }). ' +
  // A NestJS request looks like Express's.
  'In NestJS, write NestFactory.create(AppModule, { rawBody: true })'

const inNextPages = 'write export const config = { api: { bodyParser: false } } in the file of the route'

const inNode = 'mount the receiver before the parser, or let the parser keep the bytes as request.rawBody'

const foreignRequest =
  "this request is not a Node stream: pass the adapter Node's own (request.raw in Fastify, ctx.req in Koa), or " +
  'set its rawBody to the bytes'

export function fixInNode(request: IncomingMessage): string {
  if (request.readableFlowing === undefined) return foreignRequest
  const { app } = request as { app?: { use?: unknown } }
  if (typeof app?.use === 'function') return inExpress
  return 'previewData' in request ? inNextPages : inNode
}

export const fixInFastify =
  'in Fastify, register the plugin that reads the body in a scope without the receiver, or let it keep ' +
  'request.rawBody, as fastify-raw-body does'

export const fixInKoa =
  "in Koa, add the receiver's route before the body parser, or use a parser that keeps ctx.request.rawBody, " +
  'as @koa/bodyparser does'

export const fixInWeb =
  'call the handler before the code that reads the body, or let that code read a copy: await request.clone().text()'

/** For a Hono request whose `c.req.raw` was read. */
export const fixInHono = 'read the body through Hono, which keeps it: await c.req.text() instead of c.req.raw'
