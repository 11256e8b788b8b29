import { defineConfig } from 'tsdown'

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    'verify/crypto-node': 'src/verify/crypto-node.ts',
    'verify/crypto-web': 'src/verify/crypto-web.ts',
    'testing/index': 'src/testing/index.ts',
    'adapters/express': 'adapters/express.ts',
    'adapters/hono': 'adapters/hono.ts',
    'adapters/fetch': 'adapters/fetch.ts',
    'adapters/node': 'adapters/node.ts',
  },
  platform: 'neutral',
  target: 'es2023',
  dts: true,
  // Resolved in the user's runtime: node:crypto on Node, WebCrypto elsewhere.
  external: ['#crypto'],
})
