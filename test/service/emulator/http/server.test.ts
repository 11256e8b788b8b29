import { expect, test } from 'vitest'
import { reachableAt } from '../../../support/reachable-at.ts'
import { emulate } from '../started-emulator.ts'

test('The emulator listens on 127.0.0.1 only', async () => {
  const { url } = await emulate()
  expect(await reachableAt(url)).toEqual(['127.0.0.1'])
})
