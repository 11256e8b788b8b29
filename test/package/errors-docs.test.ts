import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { apiErrorCodes } from '../../src/client/index.ts'
import { webhookErrorCodes } from '../../src/index.ts'

/** The codes in the first column of the table under a heading. */
function documentedCodes(heading: string): string[] {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const [, section = ''] = readme.split(new RegExp(`^##+ ${heading}$`, 'm'))
  const [errors = ''] = section.split(/^##+ /m)
  const firstCells = errors.split('\n').map((line) => /^\|([^|]*)\|/.exec(line)?.[1] ?? '')
  return firstCells.flatMap((cell) => Array.from(cell.matchAll(/`([a-z_]+)`/g), ([, code]) => code as string))
}

test.each([
  ['Errors', webhookErrorCodes],
  ['Errors of the client', apiErrorCodes],
])('the README explains every code under "%s", once, and no other', (heading, codes) => {
  expect(documentedCodes(heading).sort()).toEqual([...codes].sort())
})
