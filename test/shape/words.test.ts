import { expect, test } from 'vitest'
import { sourceTexts } from '../support/source-texts.ts'

// The glossary is in docs/contributing.md. Each of these verbs would be a second word for its `release`.

const forbidden =
  /\b\w*?(?:giveBack|givesBack|giveUp|handBack|handOver|handsOver|putBack|keepOnly|abandon|postpone)\w*/gi

const wordsIn = (text: string): readonly string[] => text.match(forbidden) ?? []

test('a lane, an event or a key goes back by one verb: release', () => {
  const found = [...sourceTexts('src'), ...sourceTexts('adapters')].flatMap(([path, text]) =>
    wordsIn(text).map((word) => `${path}: ${word}`),
  )
  expect(found).toEqual([])
})

test.each(['lane.giveBack()', 'handOverOverdue(queue)', '#abandonAll', 'postponed'])('%s is found', (text) => {
  expect(wordsIn(text)).toHaveLength(1)
})
