import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freshPath, started } from './sqlite-tests.ts'

test('the file of an inbox is on disk, even if its name has a meaning for a driver', async () => {
  const folder = dirname(await freshPath())
  const before = process.cwd()
  process.chdir(folder)
  onTestFinished(() => process.chdir(before))
  const name = 'file::memory:'
  started({ path: name })
  expect(await readdir(folder)).toContain(name)
})
