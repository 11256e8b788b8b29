import type { Server } from 'node:http'
import type { Scheme } from '../deliveries.ts'

export interface Contender {
  readonly name: string
  /** The steps that it performs for a delivery. */
  readonly does: string
  readonly scheme: Scheme
  /** The name of the contender that it is compared with. */
  readonly baseline?: string
  /** `true` when it calls the handler for each event. */
  readonly handles: boolean
  /** Makes the server. It imports only its own modules, so that its process holds nothing else. */
  server(): Promise<Server>
}

const bare = { does: 'body', scheme: 'x-signature', handles: false } as const
const whole = { does: 'body, HMAC, schema, dedup, handler', scheme: 'x-signature', handles: true } as const
const durable = { ...whole, does: 'body, HMAC, schema, dedup, disk, handler' } as const
const peer = { does: 'body, HMAC, handler', baseline: 'hand-written/node', handles: true } as const

// Each stands next to its baseline, so that both meet the same conditions on a shared machine.
export const contenders: readonly Contender[] = [
  { ...bare, name: 'bare/node', server: async () => (await import('./bare.ts')).node() },
  {
    ...peer,
    name: '@octokit/webhooks',
    scheme: 'github',
    server: async () => (await import('./peers.ts')).octokit(),
  },
  {
    ...peer,
    name: 'standardwebhooks',
    scheme: 'standard-webhooks',
    server: async () => (await import('./peers.ts')).standardWebhooks(),
  },
  { ...whole, name: 'hand-written/node', server: async () => (await import('./hand-written.ts')).node() },
  {
    ...whole,
    name: 'ours/node',
    baseline: 'hand-written/node',
    server: async () => (await import('./ours.ts')).node(),
  },
  { ...bare, name: 'bare/express', server: async () => (await import('./bare.ts')).onExpress() },
  { ...whole, name: 'hand-written/express', server: async () => (await import('./hand-written.ts')).onExpress() },
  {
    ...whole,
    name: 'ours/express',
    baseline: 'hand-written/express',
    server: async () => (await import('./ours.ts')).onExpress(),
  },
  {
    ...durable,
    name: 'sqlite/express',
    baseline: 'ours/express',
    server: async () => (await import('./ours.ts')).onExpressDurably(),
  },
  {
    ...whole,
    name: 'ours/node-before-express',
    baseline: 'hand-written/express',
    server: async () => (await import('./ours.ts')).beforeExpress(),
  },
  { ...bare, name: 'bare/hono', server: async () => (await import('./bare.ts')).onHono() },
  { ...whole, name: 'hand-written/hono', server: async () => (await import('./hand-written.ts')).onHono() },
  {
    ...whole,
    name: 'ours/hono',
    baseline: 'hand-written/hono',
    server: async () => (await import('./ours.ts')).onHono(),
  },
  {
    ...durable,
    name: 'sqlite/hono',
    baseline: 'ours/hono',
    server: async () => (await import('./ours.ts')).onHonoDurably(),
  },
]

/** A server with a Postgres inbox. It is not part of the rounds: it needs the URL of a database in `BENCH_POSTGRES`. */
export const postgresOverExpress: Contender = {
  ...durable,
  name: 'postgres/express',
  baseline: 'ours/express',
  server: async () => (await import('./ours.ts')).onExpressInPostgres(),
}

/** A server whose handlers take 5 s. It is not part of the rounds. */
export const slowHandlers: Contender = {
  ...whole,
  name: 'ours/node, slow handlers',
  server: async () => (await import('./ours.ts')).slowNode(),
}
