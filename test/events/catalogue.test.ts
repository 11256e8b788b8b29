import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { eventTypes } from '../../src/index.ts'

const entry = readFileSync(new URL('../../src/index.ts', import.meta.url), 'utf8')

/** `FileReceivedEvent` for `file.received`. */
const interfaceOf = (type: string): string =>
  `${type.replace(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`

test.each(eventTypes)('the event of %s is an interface that the entry exports', (type) => {
  expect(entry).toContain(`  type ${interfaceOf(type)},\n`)
})
