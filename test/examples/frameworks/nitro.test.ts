import { proveExample } from './example.suite.ts'

proveExample('nitro sqlite', {
  name: 'nitro',
  handlers: 'server/utils/handlers.ts',
  built: '.output/server/index.mjs',
  typed: true,
  args: ['.output/server/index.mjs'],
  env: { HOST: '127.0.0.1' },
  listening: /Listening on (.+)/,
})
