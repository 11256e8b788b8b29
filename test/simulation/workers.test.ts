import { expect, test, vi } from 'vitest'

// Read when the modules are loaded.
vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
const { play } = await import('./play.ts')

test('in a simulation of Workers, where what a request has begun ends with it, 200 runs keep every promise', async () => {
  let played = 0
  for await (const { seed, violations } of play(1, 200)) {
    played++
    expect(violations, `npx tsx test/simulation/run.ts --workers --from ${seed} --seeds 1 --story`).toEqual([])
  }
  expect(played).toBe(200)
}, 600_000)
