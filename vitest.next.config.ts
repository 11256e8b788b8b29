import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** Temporary: runs the tests of the inboxes in databases against the new half. */
const swapped = (process.env['NEXT'] ?? 'sqlite.ts,durable-object.ts').split(',')
const root = fileURLToPath(new URL('./src/inbox/', import.meta.url))
export default defineConfig({
  plugins: [
    {
      name: 'next',
      enforce: 'pre',
      async resolveId(source, importer, options) {
        if (!source.endsWith('.ts') || importer?.includes('/src/inbox/next/')) return
        const found = await this.resolve(source, importer, { ...options, skipSelf: true })
        const name = swapped.find((each) => found?.id === `${root}${each}`)
        return name === undefined ? found : `${root}next/${name}`
      },
    },
  ],
  resolve: { alias: { '#crypto': fileURLToPath(new URL('./src/internal/crypto/node.ts', import.meta.url)) } },
  test: { setupFiles: 'test/support/setup.ts', testTimeout: 300_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000 } }, maxWorkers: 2 },
})
