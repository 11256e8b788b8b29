import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const root = fileURLToPath(new URL('../../../', import.meta.url))

// The examples whose frameworks are too large for every `npm ci`, which are installed and built one after another, and every
// inbox on each runtime.
export default defineConfig({
  root,
  resolve: { alias: { '#crypto': `${root}src/verify/crypto-node.ts` } },
  test: {
    include: ['test/examples/frameworks/*.test.ts', 'test/runtimes/inboxes.test.ts'],
    globalSetup: 'test/package/install.ts',
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 20_000 } },
  },
})
