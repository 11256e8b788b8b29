import { describe, expect, test } from 'vitest'
import { play } from './play.ts'

describe('in a simulation of senders, storage and processes that fail', () => {
  // `npm run soak -- simulation` plays more, also as on Workers and over Postgres.
  test('60 runs keep every promise', async () => {
    let played = 0
    for await (const { seed, violations } of play(1, 60)) {
      played++
      expect(violations, `npx tsx test/simulation/run.ts --from ${seed} --seeds 1 --story`).toEqual([])
    }
    expect(played).toBe(60)
  })

  test('a seed replays exactly', async () => {
    const stories: string[] = []
    for (let i = 0; i < 2; i++) for await (const { text } of play(7, 3)) stories.push(text)
    expect(stories.slice(3)).toEqual(stories.slice(0, 3))
    expect(new Set(stories).size).toBe(3)
  })
})
