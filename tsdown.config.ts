import { defineConfig } from 'tsdown'

export default defineConfig({
  entry: [
    'src/index.ts',
    'src/verify/crypto-{node,web}.ts',
    'src/idempotency/redis.ts',
    'src/inbox/{sqlite,bullmq}.ts',
    'src/testing/index.ts',
    'src/client/index.ts',
    'src/emulator/index.ts',
    'src/cli/main.ts',
    'adapters/{express,hono,fetch,node}.ts',
  ],
  platform: 'neutral',
  // One file a module: what a stack trace names can be found here.
  unbundle: true,
  target: 'es2023',
  dts: true,
  // What the emulator's page is served with.
  copy: [{ from: 'src/emulator/page/*.{css,js}', to: 'dist/src/emulator/page' }],
  // Resolved in the user's runtime: node:crypto on Node, WebCrypto elsewhere.
  deps: { neverBundle: ['#crypto', /^node:/, /^hono/, /^@hono/] },
})
