import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { webhookErrorCodes } from '../../src/index.ts'
import { apiErrorCodes } from '../../src/service/client/index.ts'

/** The codes in the first column of the table under a heading. */
function documentedCodes(heading: string): string[] {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  const [, section = ''] = page.split(new RegExp(`^##+ ${heading}$`, 'm'))
  const [errors = ''] = section.split(/^##+ /m)
  const firstCells = errors.split('\n').map((line) => /^\|([^|]*)\|/.exec(line)?.[1] ?? '')
  return firstCells.flatMap((cell) => Array.from(cell.matchAll(/`([a-z_]+)`/g), ([, code]) => code as string))
}

test.each([
  ['Errors of the receiver', webhookErrorCodes],
  ['Errors of the client', apiErrorCodes],
])('the documentation explains every code under "%s", once, and no other', (heading, codes) => {
  expect(documentedCodes(heading).sort()).toEqual([...codes].sort())
})
