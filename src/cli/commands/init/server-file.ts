/** What `init` asks about a receiver. */
export interface ServerChoices {
  readonly framework: keyof typeof frameworks
  readonly inbox: keyof typeof inboxes
  readonly sender: 'media-service' | 'own'
}

interface Framework {
  readonly packages: readonly string[]
  /** Packages with types, for TypeScript. */
  readonly types: readonly string[]
  readonly imports: readonly string[]
  /** Code that mounts `receiver` and listens on `PORT`. */
  readonly mount: string
  /** Name of what listens. */
  readonly server: string
}

const closing = "import { closeOnSignals } from 'media-webhooks/node'"
const said = `console.log(\`listening on \${PORT}\`)`
const listening = `const server = app.listen(Number(PORT), () => ${said})`

export const frameworks = {
  express: {
    packages: ['express'],
    types: ['@types/express'],
    imports: ["import express from 'express'", "import { expressHandler } from 'media-webhooks/express'", closing],
    mount: `const app = express()
app.post('/webhooks/media', expressHandler(receiver)) // before express.json()
${listening}`,
    server: 'server',
  },
  hono: {
    packages: ['hono', '@hono/node-server'],
    types: [],
    imports: [
      "import { serve } from '@hono/node-server'",
      "import { Hono } from 'hono'",
      "import { honoHandler } from 'media-webhooks/hono'",
      closing,
    ],
    mount: `const app = new Hono()
app.post('/webhooks/media', honoHandler(receiver))
const server = serve({ fetch: app.fetch, port: Number(PORT) }, () => ${said})`,
    server: 'server',
  },
  fastify: {
    packages: ['fastify'],
    types: [],
    imports: ["import fastify from 'fastify'", "import { fastifyReceiver } from 'media-webhooks/fastify'", closing],
    mount: `// By default, Fastify answers 503 while it closes, and some senders never send such a delivery again.
const app = fastify({ return503OnClosing: false })
app.register(fastifyReceiver, { receiver, url: '/webhooks/media' })
await app.listen({ port: Number(PORT) })
${said}`,
    server: 'app',
  },
  koa: {
    packages: ['koa', '@koa/router'],
    types: ['@types/koa'],
    imports: [
      "import Router from '@koa/router'",
      "import Koa from 'koa'",
      "import { koaHandler } from 'media-webhooks/koa'",
      closing,
    ],
    mount: `const router = new Router()
router.all('/webhooks/media', koaHandler(receiver)) // before body parsers
const app = new Koa()
app.use(router.routes())
${listening}`,
    server: 'server',
  },
  node: {
    packages: [],
    types: [],
    imports: [
      "import { createServer } from 'node:http'",
      "import { closeOnSignals, nodeHandler } from 'media-webhooks/node'",
    ],
    mount: `const server = createServer(nodeHandler(receiver)).listen(Number(PORT), () => ${said})`,
    server: 'server',
  },
} satisfies Record<string, Framework>

/** An inbox: its packages, its import, the option of the receiver, and the variable of the environment that it reads. */
export const inboxes = {
  memory: {},
  sqlite: { from: 'sqlite', option: "sqliteInbox({ path: 'inbox.db' })" },
  postgres: {
    packages: ['pg'],
    types: ['@types/pg'],
    from: 'postgres',
    option: 'postgresInbox({ connection: DATABASE_URL })',
    variable: ['DATABASE_URL', 'postgres://localhost/app'],
  },
  bullmq: {
    packages: ['bullmq', 'ioredis'],
    from: 'bullmq',
    option: 'bullmqInbox({ connection: REDIS_URL })',
    variable: ['REDIS_URL', 'redis://127.0.0.1:6379'],
  },
} satisfies Record<string, InboxChoice>

export interface InboxChoice {
  readonly packages?: readonly string[]
  readonly types?: readonly string[]
  readonly from?: string
  readonly option?: string
  readonly variable?: readonly [name: string, example: string]
}

const ownSender = `
// Name the event types of your service, with a schema for the data of each. The documentation page senders.md says more.
const sender = defineSender({
  name: 'my-service',
  events: { 'video.ready': z.object({ seconds: z.number() }) },
  read: ({ type, id, video_id, data }) => ({ type, id, mediaId: video_id, data }),
})
`

const ownHandler = `receiver.on('video.ready', async ({ mediaId, data }) => {
  console.log(\`publish \${mediaId}, \${data.seconds} s\`) // throws? It is retried.
})
`

const handler = `receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
  console.log(\`publish \${mediaId} in \${qualities.join(', ')}\`) // throws? It is retried.
})
`

const bySource = (a: string, b: string): number => (sourceOf(a) < sourceOf(b) ? -1 : 1)
const sourceOf = (line: string): string => line.slice(line.indexOf(" from '"))

/** The text of a server, which is JavaScript and TypeScript at once. */
export function serverFile({ framework, inbox: inboxName, sender }: ServerChoices): string {
  const { imports, mount, server }: Framework = frameworks[framework]
  const { from, option, variable }: InboxChoice = inboxes[inboxName]
  const names = ['WEBHOOK_TOKEN', ...(variable === undefined ? [] : [variable[0]])].map((name) => `${name} = ''`)
  const isOwn = sender === 'own'
  return `${[
    ...imports,
    `import { createReceiver, ${isOwn ? 'defineSender, ' : ''}urlToken } from 'media-webhooks'`,
    ...(from === undefined ? [] : [`import { ${from}Inbox } from 'media-webhooks/inbox/${from}'`]),
    ...(isOwn ? ["import { z } from 'zod'"] : []),
  ]
    .sort(bySource)
    .join('\n')}

const { ${names.join(', ')}, PORT = '3000' } = process.env
${isOwn ? ownSender : ''}
const receiver = createReceiver({
${isOwn ? '  sender,\n' : ''}  verify: urlToken({ secret: WEBHOOK_TOKEN }), // the service sends it in the URL: ?token=…
${option === undefined ? '' : `  inbox: ${option},\n`}})

${isOwn ? ownHandler : handler}
${mount}

closeOnSignals(${server}, receiver) // on SIGTERM and SIGINT
`
}
