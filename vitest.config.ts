import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'

// These run against the package as a user installs it, which is packed and installed once before them.
const installed = ['test/package/**/*.test.ts', 'test/runtimes/**/*.test.ts', 'test/examples/**/*.test.ts']

// Source is tested without a build.
const resolve = { alias: { '#crypto': fileURLToPath(new URL('./src/verify/crypto-node.ts', import.meta.url)) } }

export default defineConfig({
  test: {
    // The tests wait for servers more than they compute, so a machine with two cores runs two files at a time.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      {
        resolve,
        test: {
          name: 'source',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...installed],
          // A test that waits for something ends as soon as it has come. On a busy machine that takes longer.
          setupFiles: 'test/setup.ts',
          testTimeout: 30_000,
          hookTimeout: 30_000,
          expect: { poll: { timeout: 10_000 } },
          typecheck: { enabled: true, include: ['test/**/*.test-d.ts'] },
        },
      },
      {
        resolve,
        test: {
          name: 'installed',
          include: installed,
          // They have a run of their own: `npm run test:examples`.
          exclude: [...configDefaults.exclude, 'test/examples/frameworks/**', 'test/runtimes/inboxes.test.ts'],
          globalSetup: 'test/package/install.ts',
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
    ],
  },
})
