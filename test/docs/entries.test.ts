import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { entries } from '../../docs/.vitepress/entries.ts'

test('the API reference has a page for every entry of the package, and for no other', () => {
  const { exports } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const subpaths = Object.keys(exports).filter((subpath) => !subpath.endsWith('.json'))
  const names = subpaths.map((subpath) => subpath.replace(/^\./, 'media-webhooks'))
  expect(entries.map(([name]) => name).toSorted()).toEqual(names.toSorted())
})
