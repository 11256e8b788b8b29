import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { alias: { '#crypto': fileURLToPath(new URL('./src/verify/crypto-node.ts', import.meta.url)) } },
  test: { include: ['test/**/*.test.ts'], typecheck: { enabled: true, include: ['test/**/*.test-d.ts'] } },
})
