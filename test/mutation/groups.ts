/** A part of the source, and the tests that prove it. A pattern that begins with `!` leaves files out. */
export interface Group {
  /** The source files that are mutated. */
  readonly mutate: readonly string[]
  /** The test files that have to notice. */
  readonly tests: readonly string[]
  /** `true` if one of the test files changes globals or modules, so that each has to load them anew. */
  readonly isolate?: boolean
}

const memoryInbox = [
  'test/inbox/memory{,/**/*}.test.ts',
  'test/inbox/{define-inbox,lanes}.test.ts',
  'test/contract/inbox-memory.test.ts',
]

/** The groups that `npm run mutation -- <name>` runs on their own. */
export const groups = {
  verify: { mutate: ['src/verify/**'], tests: ['test/verify/**/*.test.ts'] },
  events: {
    mutate: ['src/events/**'],
    tests: ['test/events/{emitted-at,fields,formats,hostile,key,key-option}.test.ts'],
  },
  handlers: {
    mutate: ['src/handlers/**'],
    tests: ['test/handlers/**/*.test.ts', 'test/receiver/{handles,handling,options,order}.test.ts', ...memoryInbox],
  },
  receiver: {
    mutate: ['src/receiver/**'],
    tests: [
      'test/receiver/*.test.ts',
      // It reads the source.
      '!test/receiver/path.test.ts',
      'test/handlers/**/*.test.ts',
      'test/verify/verifier.test.ts',
    ],
  },
  idempotency: {
    mutate: ['src/idempotency/{define-store,leases,lru,store}.ts'],
    tests: [
      'test/idempotency/{claims,define-store,leases,lru}.test.ts',
      'test/contract/store-lru.test.ts',
      ...memoryInbox,
    ],
  },
  redis: {
    mutate: ['src/idempotency/redis{,-client}.ts', 'src/internal/storage/reach-redis.ts'],
    tests: ['test/idempotency/redis*.test.ts', 'test/contract/store-redis*.test.ts'],
  },
  memory: {
    mutate: [
      'src/inbox/{memory,inbox,lanes,reading,closing,define-inbox}.ts',
      'src/inbox/{memory,engine,operations}/**',
    ],
    tests: [
      ...memoryInbox,
      'test/contract/inbox-sqlite.test.ts',
      'test/inbox/{engine,operations}/*.test.ts',
      'test/idempotency/leases.test.ts',
    ],
    isolate: true,
  },
  internal: {
    mutate: ['src/internal/**', 'src/errors.ts'],
    tests: [
      'test/internal/**/*.test.ts',
      'test/handlers/**/*.test.ts',
      'test/receiver/{closing,handling,options,reading,reporter}.test.ts',
      'test/events/hostile.test.ts',
      ...memoryInbox,
    ],
    isolate: true,
  },
  queue: {
    mutate: ['src/inbox/queue.ts', 'src/inbox/queue/**'],
    tests: ['test/inbox/queue/{claims,consuming,redis,sending,workers}.test.ts', 'test/contract/inbox-queue.test.ts'],
    isolate: true,
  },
  // The groups below leave out the tests that start processes, or workerd: those run the code as it is.
  'durable-object': {
    mutate: [
      'src/inbox/durable-object.ts',
      'src/inbox/durable-object/**',
      'src/idempotency/durable-object.ts',
      'src/idempotency/durable-object/**',
      'src/internal/storage/durable-objects.ts',
    ],
    tests: [
      'test/inbox/durable-object/*.test.ts',
      '!test/inbox/durable-object/{kills,objects}.test.ts',
      // It loads the source anew, so Stryker would take it for the one test of each constant.
      '!test/inbox/durable-object/workers.test.ts',
      'test/contract/{inbox,store}-durable-object-from-worker.test.ts',
    ],
  },
  sqlite: {
    mutate: ['src/inbox/sqlite.ts', 'src/inbox/{sqlite,sql}/**'],
    tests: [
      'test/inbox/{sqlite,sql}/*.test.ts',
      '!test/inbox/sqlite/{backup,crash-loop,kills,locked,lost-lock,pause,power-loss,retry-from-outside}.test.ts',
      // A worker thread has no working directory of its own.
      '!test/inbox/sqlite/relative-path.test.ts',
      'test/contract/{inbox,database}-sqlite.test.ts',
    ],
  },
  bullmq: {
    mutate: ['src/inbox/bullmq.ts', 'src/inbox/bullmq/**'],
    tests: [
      'test/inbox/bullmq.test.ts',
      'test/inbox/bullmq/*.test.ts',
      '!test/inbox/bullmq/{crash-loop,kills,outages}.test.ts',
      'test/contract/inbox-bullmq.test.ts',
    ],
  },
  postgres: {
    mutate: ['src/inbox/postgres.ts', 'src/inbox/postgres/**', 'src/inbox/pglite.ts', 'src/inbox/pglite/**'],
    tests: [
      'test/inbox/postgres/*.test.ts',
      '!test/inbox/postgres/{crash-loop,kills,order,operating,outages}.test.ts',
      'test/contract/inbox-{postgres,postgres-polling,pglite}.test.ts',
      'test/contract/database-postgres.test.ts',
    ],
  },
} as const satisfies Record<string, Group>

export type GroupName = keyof typeof groups

/** The groups that `npm run mutation -- core` runs. */
export const core: readonly GroupName[] = ['verify', 'events', 'handlers', 'receiver', 'idempotency']
