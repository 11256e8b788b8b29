import { expect, test } from 'vitest'
import { ageText, durationText, parseDuration } from '../../src/internal/duration.ts'

test.each([
  ['250 ms', 250],
  ['90 s', 90_000],
  ['90s', 90_000],
  ['10 min', 600_000],
  ['2 h', 7_200_000],
  ['1.5 h', 5_400_000],
  ['1 d', 86_400_000],
  ['0 s', 0],
])('%j is %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each(['', '90', 's', '90 sec', '-1 s', '1,5 h', '1 h 30 min', ' 1 s', '1 s\n', '1e3 s', '1 toString'])(
  '%j is not a duration',
  (text) => {
    expect(parseDuration(text)).toBeNaN()
  },
)

test.each([
  [0, '0 ms'],
  [25, '25 ms'],
  [1_500, '1500 ms'],
  [90_000, '90 s'],
  [2_400_000, '40 min'],
  [9_000_000, '2.5 h'],
  [172_800_000, '2 d'],
])('%d ms is written %j', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})

test.each([
  [-1, '0 s'],
  [1_999, '1 s'],
  [119_000, '119 s'],
  [3_599_000, '59 min'],
  [9_000_000, '2 h'],
  [172_800_000, '2 d'],
])('an age of %d ms is written %j', (ms, text) => {
  expect(ageText(ms)).toBe(text)
})
