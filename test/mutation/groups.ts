/** A part of the source, and the tests that prove it. */
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
  'test/inbox/define-inbox.test.ts',
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
      // Without the one that reads the source.
      'test/receiver/!(path).test.ts',
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
    mutate: ['src/idempotency/redis{,-client}.ts', 'src/internal/reach-redis.ts'],
    tests: ['test/idempotency/redis.test.ts', 'test/contract/store-redis.test.ts'],
  },
  memory: {
    mutate: ['src/inbox/memory.ts', 'src/inbox/{memory,shared}/**'],
    tests: [
      ...memoryInbox,
      'test/inbox/shared/**/*.test.ts',
      'test/contract/inbox-sqlite.test.ts',
      'test/idempotency/leases.test.ts',
      'test/internal/workers.test.ts',
    ],
    isolate: true,
  },
  internal: {
    mutate: ['src/internal/**', '!src/internal/reach-redis.ts'],
    tests: [
      'test/internal/**/*.test.ts',
      'test/handlers/**/*.test.ts',
      'test/receiver/{closing,handling,options,reading,reporter}.test.ts',
      'test/events/hostile.test.ts',
      ...memoryInbox,
    ],
    isolate: true,
  },
  sqlite: {
    mutate: ['src/inbox/sqlite.ts', 'src/inbox/sqlite/**'],
    // Without those that start processes, which run the code as it is.
    tests: [
      'test/inbox/sqlite/{clean-up,clock,closing,failures,file,files-beside,hashes,opening,outside,owner}.test.ts',
      'test/inbox/sqlite/{progress,recovery,suspects,take-up,transaction*,unreadable,upkeep}.test.ts',
      'test/contract/inbox-sqlite.test.ts',
    ],
  },
  bullmq: {
    mutate: ['src/inbox/bullmq.ts', 'src/inbox/bullmq/**'],
    tests: [
      'test/inbox/bullmq.test.ts',
      'test/inbox/bullmq/{breaks,crashes,inspection,isolation,leases,unreadable}.test.ts',
      'test/contract/inbox-bullmq.test.ts',
    ],
  },
  postgres: {
    mutate: ['src/inbox/postgres.ts', 'src/inbox/postgres/**'],
    tests: [
      'test/inbox/postgres/{backlog,crashes,hashes,keys,leases,records,schema,transactions}.test.ts',
      'test/contract/inbox-postgres.test.ts',
    ],
  },
} as const satisfies Record<string, Group>

export type GroupName = keyof typeof groups

/** The groups that `npm run mutation -- core` runs. */
export const core: readonly GroupName[] = ['verify', 'events', 'handlers', 'receiver', 'idempotency']
