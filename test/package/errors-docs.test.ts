import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { webhookErrorCodes } from '../../src/index.ts'

/** The codes in the first column of the table under "## Errors". */
function documentedCodes(): string[] {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const [, section = ''] = readme.split(/^## Errors$/m)
  const [errors = ''] = section.split(/^## /m)
  const firstCells = errors.split('\n').map((line) => /^\|([^|]*)\|/.exec(line)?.[1] ?? '')
  return firstCells.flatMap((cell) => Array.from(cell.matchAll(/`([a-z_]+)`/g), ([, code]) => code as string))
}

test('the README explains every error code, once, and no other', () => {
  expect(documentedCodes().sort()).toEqual([...webhookErrorCodes].sort())
})
