import { proveExample } from './example.suite.ts'

proveExample('sveltekit sqlite', {
  name: 'sveltekit',
  handlers: 'src/lib/server/handlers.ts',
  built: 'build/index.js',
  typed: true,
  args: ['build'],
  env: { HOST: '127.0.0.1' },
  listening: /Listening on (.+)/,
})
