import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { temporaryFile } from '../fixture.ts'
import { type Effect, openEffects } from './effects.ts'
import { floodingSender } from './sender.ts'
import { effectsPathOf, startChild } from './start-child.ts'

// `npm run soak` kills more often.
const kills = Number(process.env['SOAK'] ?? 4)

const { path, remove } = await temporaryFile()
const sender = floodingSender(24)
let child: Awaited<ReturnType<typeof startChild>>

afterAll(async () => {
  await child.kill()
  sender.close()
  await remove()
})

function readEffects(): readonly Effect[] {
  const effects = openEffects(effectsPathOf(path))
  try {
    return effects.all()
  } finally {
    effects.close()
  }
}

test(
  `no acknowledged event is lost by ${kills} kills, and only events that a kill cut off are handled twice`,
  async () => {
    for (let i = 0; i < kills; i++) {
      child = await startChild(path)
      const flood = sender.flood(child.url)
      await pause(100 + Math.random() * 900)
      await child.kill()
      await flood
    }
    child = await startChild(path)
    while ((await child.unfinished()) > 0) await pause(20)

    const effects = readEffects()
    const runs = new Map<string, Set<number>>()
    let twiceInOneProcess = 0
    for (const { key, handler, pid } of effects) {
      const pids = runs.get(`${handler} ${key}`) ?? new Set()
      if (pids.has(pid)) twiceInOneProcess++
      runs.set(`${handler} ${key}`, pids.add(pid))
    }
    const handledBy = (name: string) =>
      new Set(effects.filter(({ handler }) => handler === name).map(({ mediaId }) => mediaId))
    const [first, second] = [handledBy('first'), handledBy('second')]
    const missing = [...sender.acknowledged].filter((mediaId) => !first.has(mediaId) || !second.has(mediaId))
    const twice = (name: string) => [...runs].filter(([run, pids]) => run.startsWith(name) && pids.size > 1).length

    console.log(
      `${kills} kills: ${sender.sent.length} events sent, ${sender.acknowledged.size} acknowledged, ${second.size} handled, ` +
        `${missing.length} missing; run again after a kill: first handler ${twice('first')}, second ${twice('second')}`,
    )
    expect(sender.acknowledged.size).toBeGreaterThan(kills * 20)
    expect(missing).toEqual([])
    expect(twiceInOneProcess).toBe(0)
    expect(second.size).toBe(first.size)
    // A kill cuts off the 16 running events, and those whose end was on its way to the disk.
    expect(twice('second')).toBeLessThanOrEqual(kills * 40)
  },
  kills * 10_000,
)
