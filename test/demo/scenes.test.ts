import { expect, test } from 'vitest'
import { run } from './program.ts'

test('npm start -- --exit plays every scene, prints each delivery, each handling and a summary, and exits with status 0', async () => {
  const { stdout, stderr, status, lines } = await run(['--exit'])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })

  const count = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).length
  // The first three media items have 5, 6 and 4 events, the other seven 4 each. Then come the test delivery and an
  // unknown type.
  expect(count(/^ .* handling {2}handled /)).toBe(45)
  expect(count(/^ .* delivery {2}accepted +200 /)).toBe(45)
  // Four events each: delivered twice at the same time, delivered again, and sent again because the answer was lost.
  expect(count(/^ .* delivery {2}duplicate +200 /)).toBe(12)
  expect(count(/^ .* delivery {2}rejected +503 /)).toBe(1)
  expect(count(/^ .* delivery {2}unauthorized +401 /)).toBe(1)
  expect(count(/^ .* delivery {2}malformed +400 /)).toBe(5)
  expect(count(/^ .* delivery {2}incomplete +400 /)).toBe(4)
  expect(count(/handled .*captions\.finished .* skipped an unknown type/)).toBe(1)
  expect(count(/handled .*encoding\.started +00000000 .* noted the test delivery/)).toBe(1)
  expect(count(/handled .* \(late: /)).toBeGreaterThan(0)
  expect(lines.find((line) => line.startsWith('all '))).toMatch(/^all +45 +68 +15 +53 +12 +45$/)
  expect(stdout).toContain('Every event was handled exactly once, and every bad delivery was rejected.')
})
