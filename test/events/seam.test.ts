import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { eventTypes } from '../../src/index.ts'

const src = new URL('../../src/', import.meta.url)
const sources = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))
const codeOf = (path: string) => readFileSync(new URL(path, src), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')

// The samples, the emulator and the commands are the media service's.
const ofTheService = /^(?:events\/media-service|testing|service\/emulator|cli)\//

test('only the folder of the media service, and what is for that service alone, names its event types', () => {
  const word = new RegExp(eventTypes.map((type) => type.replace('.', '[._]')).join('|'))
  const naming = sources.filter((path) => word.test(codeOf(path)))
  expect(naming.filter((path) => !ofTheService.test(path))).toEqual([])
  expect(naming).toContain('events/media-service/catalogue.ts')
})

test('only the receiver, which has it as a default, needs the media service to run', () => {
  const importing = sources.filter((path) => /^import (?!type ).*media-service\//m.test(codeOf(path)))
  const ofReceiver = importing.filter((path) => !ofTheService.test(path) && !path.startsWith('service/client/'))
  expect(ofReceiver).toEqual(['receiver/receiver.ts'])
})
