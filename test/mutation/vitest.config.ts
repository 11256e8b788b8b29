import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { type Group, type GroupName, groups } from './groups.ts'

const name = process.env['MUTATION_GROUP'] as GroupName
const { tests, isolate = false }: Group = groups[name]

/** Runs the test files of the group that MUTATION_GROUP names. */
export default defineConfig({
  resolve: { alias: { '#crypto': fileURLToPath(new URL('../../src/internal/crypto/node.ts', import.meta.url)) } },
  test: {
    include: [...tests],
    exclude: [],
    isolate,
    setupFiles: 'test/support/setup.ts',
    // Stryker ends a mutant that hangs much earlier.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
  },
})
