import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

// The glossary is in docs/contributing.md. These verbs once meant what `release` means there, each in its own file.

const root = new URL('../../', import.meta.url)
const forbidden =
  /\b\w*?(?:giveBack|givesBack|giveUp|handBack|handOver|handsOver|putBack|keepOnly|abandon|postpone)\w*/gi

const files = ['src', 'adapters'].flatMap((folder) =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(tsx?|js)$/.test(path))
    .map((path) => `${folder}/${path}`),
)

const wordsIn = (text: string): readonly string[] => text.match(forbidden) ?? []

test('a lane, an event or a key goes back by one verb: release', () => {
  const found = files.flatMap((path) =>
    wordsIn(readFileSync(new URL(path, root), 'utf8')).map((word) => `${path}: ${word}`),
  )
  expect(found).toEqual([])
})

test.each(['lane.giveBack()', 'handOverOverdue(queue)', '#abandonAll', 'postponed'])('%s is found', (text) => {
  expect(wordsIn(text)).toHaveLength(1)
})
