import { expect, test } from 'vitest'
import { eventTypes } from '../../src/index.ts'
import { pageOf } from './pages.ts'

test('the page about handlers lists every event type', () => {
  const row = pageOf('handlers').text.match(/^\| `type` \| (.*) \|$/m)?.[1] ?? ''
  expect(Array.from(row.matchAll(/`(.*?)`/g), ([, type]) => type)).toEqual(eventTypes)
})
