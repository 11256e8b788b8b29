import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

/** Most lines of each folder of `src/inbox`, and of the files beside them. Lower one with every change that makes it smaller. */
const most = {
  sql: 4_082,
  postgres: 2_475,
  sqlite: 2_280,
  'durable-object': 870,
  pglite: 180,
  bullmq: 2_341,
  engine: 380,
  memory: 1_190,
  operations: 802,
  queue: 110,
  '.': 1_640,
}

const root = fileURLToPath(new URL('../../src/inbox', import.meta.url))

function linesIn(folder: string): number {
  const files = readdirSync(join(root, folder)).filter((name) => name.endsWith('.ts'))
  return files.reduce((sum, name) => sum + readFileSync(join(root, folder, name), 'utf8').split('\n').length - 1, 0)
}

test('every folder of src/inbox has a limit', () => {
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  expect([...folders.map(({ name }) => name), '.'].sort()).toEqual(Object.keys(most).sort())
})

test.each(Object.entries(most))('src/inbox/%s has at most %i lines', (folder, limit) => {
  expect(linesIn(folder)).toBeLessThanOrEqual(limit)
})
