import { expect, test } from 'vitest'
import { reachableAt } from '../support/reachable-at.ts'
import { start } from './program.ts'

test.each(['listen', 'emulate'])('%s listens on 127.0.0.1 only', async (command) => {
  const { url } = JSON.parse(await start([command, '--port', '0', '--json']).line(/"url"/))
  expect(await reachableAt(url)).toEqual(['127.0.0.1'])
})
