/** What may be imported, by the folder or file that imports it. */
export type Rules = Readonly<Record<string, readonly string[]>>

/** What each folder and file of `src/` may import from the others, types included: only what stands above it. */
export const folders: Rules = {
  'errors.ts': [],
  internal: ['errors.ts'],
  'receiver/delivery.ts': ['errors.ts', 'internal'],
  events: ['errors.ts', 'internal', 'receiver/delivery.ts'],
  verify: ['errors.ts', 'internal', 'receiver/delivery.ts'],
  idempotency: ['errors.ts', 'internal'],
  inbox: ['errors.ts', 'internal', 'events', 'idempotency'],
  handlers: ['errors.ts', 'internal', 'events', 'inbox'],
  receiver: ['errors.ts', 'internal', 'receiver/delivery.ts', 'events', 'verify', 'inbox', 'handlers'],
  'index.ts': [
    'errors.ts',
    'internal',
    'receiver/delivery.ts',
    'events',
    'verify',
    'idempotency',
    'inbox',
    'handlers',
    'receiver',
  ],
  operate: ['errors.ts', 'internal', 'events', 'inbox', 'handlers', 'receiver'],
  testing: ['errors.ts', 'internal', 'receiver/delivery.ts', 'events', 'verify', 'idempotency', 'inbox', 'receiver'],
  service: ['errors.ts', 'internal', 'events', 'verify', 'handlers', 'receiver', 'testing'],
  adapters: ['internal', 'index.ts'],
  cli: [
    'errors.ts',
    'internal',
    'events',
    'inbox',
    'handlers',
    'index.ts',
    'operate',
    'testing',
    'service',
    'adapters/node.ts',
    'package.json',
  ],
}

/**
 * The packages and built-ins that each may import, with their subpaths. The deepest match decides: `inbox/sqlite` is
 * `sqlite.ts` and `sqlite/`. `node:*` is any built-in.
 */
export const packages: Rules = {
  'internal/crypto/node': ['node:crypto'],
  'internal/process-name': ['node:os'],
  events: ['#crypto'],
  'events/media-service/wire': ['zod/mini', 'zod/v4/core'],
  verify: ['#crypto'],
  idempotency: ['lru-cache'],
  inbox: ['#crypto', 'lru-cache'],
  'inbox/queue': ['#crypto'],
  'inbox/bullmq': ['#crypto', 'bullmq', 'ioredis'],
  'inbox/sqlite': ['node:crypto', 'node:fs', 'node:path'],
  'inbox/postgres': ['node:crypto', 'pg'],
  'inbox/pglite': ['node:stream', 'pg'],
  'internal/page': ['hono/jsx', 'node:fs'],
  'operate/telemetry': ['@opentelemetry/api'],
  'operate/dashboard': ['#crypto', 'hono/html', 'hono/jsx', 'node:fs'],
  testing: ['#crypto'],
  'service/client': ['zod'],
  'service/emulator': ['@hono/node-server', 'hono', 'node:*', 'zod'],
  adapters: ['node:*'],
  'adapters/fastify': ['fastify', 'node:*'],
  'adapters/hono': ['hono', 'node:http'],
  'adapters/fetch': [],
  'adapters/aws-lambda': [],
  cli: ['node:*'],
}
