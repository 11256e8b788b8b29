import type { IncomingMessage } from 'node:http'

// The fix for each framework: it leaves the body unread, or its bytes in place. The receiver logs it with
// `body_consumed`.

const inExpress =
  'mount the receiver before express.json(), or put express.raw({ type: "*/*" }) on its path before express.json(), or ' +
  'write express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) }). ' +
  // NestJS runs on Express and leaves nothing of its own on the request.
  'In NestJS, write NestFactory.create(AppModule, { rawBody: true })'

const inNextPages = 'write export const config = { api: { bodyParser: false } } in the file of the route'

const inNode = 'mount the receiver before the parser, or let the parser keep the bytes as request.rawBody'

const foreignRequest =
  "this request is not a stream of Node: give the adapter Node's own, which is request.raw in Fastify and ctx.req in Koa, or " +
  'set its rawBody to the bytes'

/** For a request of node:http, or of a framework that adds to it. */
export function fixInNode(request: IncomingMessage): string {
  if (request.readableFlowing === undefined) return foreignRequest
  const { app } = request as { app?: { use?: unknown } }
  if (typeof app?.use === 'function') return inExpress
  return 'previewData' in request ? inNextPages : inNode
}

/** For a request that a hook of another plugin of Fastify has read. */
export const fixInFastify =
  'in Fastify, register the plugin that reads it in a scope without the receiver, or let it keep request.rawBody, ' +
  'as fastify-raw-body does'

/** For a request that a body parser of Koa has read. */
export const fixInKoa =
  'in Koa, add its route before the body parser, or use a parser that keeps ctx.request.rawBody, as @koa/bodyparser does'

/** For a `Request` of the web. */
export const fixInWeb =
  'call the handler before the code that reads the body, or let that code read a copy: await request.clone().text()'

/** For a request of Hono whose underlying `Request` was read. */
export const fixInHono = 'read the body through Hono, which keeps it: await c.req.text() in place of c.req.raw'
