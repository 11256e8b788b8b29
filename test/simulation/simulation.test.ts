import { describe, expect, test } from 'vitest'
import { play } from './play.ts'

describe('in a simulation of senders, storage and processes that fail', () => {
  test('500 runs keep every promise', async () => {
    let played = 0
    for await (const { seed, violations } of play(1, 500)) {
      played++
      expect(violations, `npx tsx test/simulation/run.ts --from ${seed} --seeds 1 --story`).toEqual([])
    }
    expect(played).toBe(500)
  }, 600_000)

  test('10 runs over Postgres do too', async () => {
    let played = 0
    for await (const { seed, violations } of play(1, 10, ['postgres'])) {
      played++
      expect(violations, `npx tsx test/simulation/run.ts --from ${seed} --seeds 1 --setup postgres --story`).toEqual([])
    }
    expect(played).toBe(10)
  }, 600_000)

  test('a seed replays exactly', async () => {
    const stories: string[] = []
    for (let i = 0; i < 2; i++) for await (const { text } of play(7, 3)) stories.push(text)
    expect(stories.slice(3)).toEqual(stories.slice(0, 3))
    expect(new Set(stories).size).toBe(3)
  }, 60_000)
})
