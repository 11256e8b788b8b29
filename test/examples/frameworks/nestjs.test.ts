import { proveExample } from './prove-example.ts'

proveExample('nestjs sqlite', {
  name: 'nestjs',
  handlers: 'src/handlers.ts',
  built: 'dist/main.js',
  args: ['dist/main.js'],
})
