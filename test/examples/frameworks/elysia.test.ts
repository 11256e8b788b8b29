import { describe } from 'vitest'
import { findRuntime } from '../../support/find-runtime.ts'
import { proveExample } from './example.suite.ts'

const bun = findRuntime('bun')

describe.skipIf(bun === undefined)('on Bun', () => {
  proveExample('elysia sqlite', {
    name: 'elysia',
    handlers: 'src/handlers.ts',
    command: bun as string,
    args: ['src/server.ts'],
  })
})
