import type { Server } from 'node:http'
import type { Scheme } from '../deliveries.ts'

/** A server that takes deliveries, ours or another one. */
export interface Contender {
  readonly name: string
  /** The names of those that it is compared with. */
  readonly beside?: readonly string[]
  /** @defaultValue 'x-signature' */
  readonly scheme?: Scheme
  /** Makes the server. It imports only its own modules, so that its process loads nothing else. */
  server(): Promise<Server>
}

const byHand = () => import('./hand-written.ts')
const ours = () => import('./ours.ts')
const peers = () => import('./peers.ts')

/** Each group is measured in turns. */
export const groups: readonly (readonly Contender[])[] = [
  [
    { name: 'node:http, by hand', server: async () => (await byHand()).onNode() },
    { name: 'node:http, by hand, no body', server: async () => (await byHand()).onNodeWithoutBody() },
    {
      name: 'node:http, `nodeHandler`',
      beside: ['node:http, by hand', 'node:http, by hand, no body'],
      server: async () => (await ours()).onNode(),
    },
    {
      name: 'node:http, `@octokit/webhooks`',
      beside: ['node:http, by hand'],
      scheme: 'github',
      server: async () => (await peers()).octokit(),
    },
    {
      name: 'node:http, `standardwebhooks`',
      beside: ['node:http, by hand'],
      scheme: 'standard-webhooks',
      server: async () => (await peers()).standardWebhooks(),
    },
  ],
  [
    { name: 'Express, by hand', server: async () => (await byHand()).onExpress() },
    { name: 'Express, by hand, lean', server: async () => (await byHand()).onLeanExpress() },
    { name: 'Express, by hand, lean, no body', server: async () => (await byHand()).onLeanExpressWithoutBody() },
    {
      name: 'Express, `expressHandler`',
      beside: ['Express, by hand', 'Express, by hand, lean', 'Express, by hand, lean, no body'],
      server: async () => (await ours()).onExpress(),
    },
    {
      name: 'Express, `expressHandler`, SQLite',
      beside: ['Express, `expressHandler`'],
      server: async () => (await ours()).onExpressDurably(),
    },
    { name: 'before Express, by hand', server: async () => (await byHand()).beforeExpress() },
    {
      name: 'before Express, `nodeHandler`',
      beside: ['before Express, by hand', 'Express, by hand'],
      server: async () => (await ours()).beforeExpress(),
    },
  ],
  [
    { name: 'Hono, by hand', server: async () => (await byHand()).onHono() },
    { name: 'Hono, by hand, no body', server: async () => (await byHand()).onHonoWithoutBody() },
    {
      name: 'Hono, `honoHandler`',
      beside: ['Hono, by hand', 'Hono, by hand, no body'],
      server: async () => (await ours()).onHono(),
    },
    {
      name: 'Hono, `honoHandler`, SQLite',
      beside: ['Hono, `honoHandler`'],
      server: async () => (await ours()).onHonoDurably(),
    },
  ],
]

/** A server with a Postgres inbox. It is in no group: it needs the URL of a database in `BENCH_POSTGRES`. */
export const postgresOverExpress: Contender = {
  name: 'Express, `expressHandler`, Postgres',
  beside: ['Express, `expressHandler`'],
  server: async () => (await ours()).onExpressInPostgres(),
}

export function contenderOf(name: string): Contender {
  const contender = [...groups.flat(), postgresOverExpress].find((each) => each.name === name)
  if (!contender) throw new Error(`No contender is named ${name}`)
  return contender
}
