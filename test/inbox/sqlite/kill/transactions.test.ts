import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { freshPath } from '../fixture.ts'
import { floodingSender } from './sender.ts'
import { startChild } from './start-child.ts'
import { openWritten } from './written.ts'

// `npm run soak` kills more often.
const kills = Number(process.env['SOAK'] ?? 3)

const program = new URL('./writing-child.ts', import.meta.url)

/** Kills a process that handles events at full speed, again and again, and counts what its handler has written. */
async function killRun(mode: 'transaction' | 'no transaction') {
  const path = await freshPath()
  const sender = floodingSender(24)
  let child = await startChild(path, program, mode)
  onTestFinished(async () => {
    sender.close()
    await child.kill()
  })
  const drained = async () => {
    while ((await child.unfinished()) > 0) await pause(20)
  }
  for (let i = 0; i < kills; i++) {
    // After crashes in a row an inbox looks for the event that causes them, and handles few at a time until then.
    if (i % 3 === 0) await drained()
    const flood = sender.flood(child.url)
    await pause(100 + Math.random() * 400)
    await child.kill()
    await flood
    child = await startChild(path, program, mode)
  }
  await drained()
  const { database, counts } = openWritten(path)
  const rows = counts()
  database.close()
  const missing = [...sender.acknowledged].filter((mediaId) => !rows.has(mediaId))
  const doubled = [...rows.values()].filter((count) => count > 1).length
  console.log(
    `${kills} kills with ${mode}: ${sender.sent.length} events sent, ${sender.acknowledged.size} acknowledged, ` +
      `${rows.size} written, ${missing.length} missing, ${doubled} written more than once`,
  )
  expect(sender.acknowledged.size).toBeGreaterThan(kills * 10)
  return { missing, doubled }
}

test(
  `after ${kills} kills, each acknowledged event has exactly one row that its handler wrote in a transaction`,
  async () => {
    expect(await killRun('transaction')).toEqual({ missing: [], doubled: 0 })
  },
  kills * 10_000,
)

test(
  `after ${kills} kills, no acknowledged event lacks its row without a transaction, but some have two`,
  async () => {
    const { missing, doubled } = await killRun('no transaction')
    expect(missing).toEqual([])
    expect(doubled).toBeGreaterThanOrEqual(0)
  },
  kills * 10_000,
)
