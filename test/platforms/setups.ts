/** The promise of a setup, in the words of the table. */
export interface Promises {
  /** No acknowledged event is lost when the platform stops, freezes or kills an instance. */
  readonly nothingLost: string
  /** Each event is handled once. */
  readonly handledOnce: string
  /** The events of one media item are handled in the order of their acceptance. */
  readonly order: string
}

/** A platform with an inbox and a moment of acknowledgement, and the file of its tests. */
export interface Setup extends Promises {
  readonly platform: string
  readonly inbox: string
  readonly ack: 'accepted' | 'handled'
  /** The path of the test file that proves it, below `test/`. */
  readonly test: string
}

const unlessKilled = 'unless it is killed'
const inOneProcess = 'in one process, until it ends'
const ifRepeated = 'if the sender repeats what failed'
const unlessCutOff = 'unless a run is cut off'

/**
 * Every setup that a test proves. `docs/platforms.md` shows them in a table, which `UPDATE=1 npx vitest run
 * test/docs/platforms.test.ts` writes.
 */
export const setups = {
  'node memory': {
    platform: 'Node server',
    inbox: 'memoryInbox',
    ack: 'accepted',
    nothingLost: unlessKilled,
    handledOnce: inOneProcess,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'node sqlite': {
    platform: 'Node server',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'node postgres': {
    platform: 'Node server',
    inbox: 'postgresInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'node bullmq': {
    platform: 'Node server',
    inbox: 'bullmqInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'no',
    test: 'runtimes/inboxes.test.ts',
  },
  'fastify sqlite': {
    platform: 'Fastify',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'platforms/fastify.test.ts',
  },
  'koa sqlite': {
    platform: 'Koa',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'platforms/koa.test.ts',
  },
  'nextjs sqlite': {
    platform: 'Next.js server',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'examples/frameworks/nextjs.test.ts',
  },
  'aws-lambda queue': {
    platform: 'AWS Lambda',
    inbox: 'queueInbox (SQS)',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'with a FIFO queue',
    test: 'platforms/aws-lambda.test.ts',
  },
  'nestjs sqlite': {
    platform: 'NestJS',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'examples/frameworks/nestjs.test.ts',
  },
  'sveltekit sqlite': {
    platform: 'SvelteKit with adapter-node',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'examples/frameworks/sveltekit.test.ts',
  },
  'nitro sqlite': {
    platform: 'Nitro, the server of Nuxt',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'examples/frameworks/nitro.test.ts',
  },
  'elysia sqlite': {
    platform: 'Elysia on Bun',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'examples/frameworks/elysia.test.ts',
  },
  'cloudflare memory': {
    platform: 'Cloudflare Workers',
    inbox: 'memoryInbox',
    ack: 'handled',
    nothingLost: ifRepeated,
    handledOnce: 'in one isolate, until it is evicted',
    order: 'no',
    test: 'platforms/workers.test.ts',
  },
  'cloudflare memory and redis': {
    platform: 'Cloudflare Workers',
    inbox: 'memoryInbox({ store: redisStore })',
    ack: 'handled',
    nothingLost: ifRepeated,
    handledOnce: unlessCutOff,
    order: 'no',
    test: 'platforms/workers.test.ts',
  },
  'cloudflare durable-object': {
    platform: 'Cloudflare Workers',
    inbox: 'durableObjectInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'platforms/cloudflare.test.ts',
  },
  'cloudflare queue': {
    platform: 'Cloudflare Workers',
    inbox: 'queueInbox (Cloudflare Queues)',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'no',
    test: 'platforms/cloudflare-queues.test.ts',
  },
  'bun memory': {
    platform: 'Bun server',
    inbox: 'memoryInbox',
    ack: 'accepted',
    nothingLost: unlessKilled,
    handledOnce: inOneProcess,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'bun sqlite': {
    platform: 'Bun server',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'bun postgres': {
    platform: 'Bun server',
    inbox: 'postgresInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'bun bullmq': {
    platform: 'Bun server',
    inbox: 'bullmqInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'no',
    test: 'runtimes/inboxes.test.ts',
  },
  'deno memory': {
    platform: 'Deno server',
    inbox: 'memoryInbox',
    ack: 'accepted',
    nothingLost: unlessKilled,
    handledOnce: inOneProcess,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'deno sqlite': {
    platform: 'Deno server',
    inbox: 'sqliteInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'deno postgres': {
    platform: 'Deno server',
    inbox: 'postgresInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'yes',
    test: 'runtimes/inboxes.test.ts',
  },
  'deno bullmq': {
    platform: 'Deno server',
    inbox: 'bullmqInbox',
    ack: 'accepted',
    nothingLost: 'yes',
    handledOnce: unlessCutOff,
    order: 'no',
    test: 'runtimes/inboxes.test.ts',
  },
} as const satisfies Record<string, Setup>

export type SetupName = keyof typeof setups
