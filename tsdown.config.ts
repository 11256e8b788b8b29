import { defineConfig } from 'tsdown'

export default defineConfig({
  entry: [
    'src/index.ts',
    'src/verify/crypto-{node,web}.ts',
    'src/testing/index.ts',
    'adapters/{express,hono,fetch,node}.ts',
  ],
  platform: 'neutral',
  // One file a module: what a stack trace names can be found here.
  unbundle: true,
  target: 'es2023',
  dts: true,
  // Resolved in the user's runtime: node:crypto on Node, WebCrypto elsewhere.
  deps: { neverBundle: ['#crypto', /^node:/, /^hono/] },
})
