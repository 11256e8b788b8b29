import { expect, test } from 'vitest'
import { duration } from '../../src/cli/commands/inbox/times.ts'

test.each([
  [-5, '0 s'],
  [0, '0 s'],
  [999, '0 s'],
  [119_999, '119 s'],
  [120_000, '2 min'],
  [7_199_999, '119 min'],
  [7_200_000, '2 h'],
  [172_799_999, '47 h'],
  [172_800_000, '2 d'],
])('%i ms are %s', (ms, text) => expect(duration(ms)).toBe(text))
