import { execFile } from 'node:child_process'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import type { SqliteDatabase } from '../../../src/inbox/sqlite.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { longestComputing, ownTime } from '../../support/own-time.ts'
import { startProgram } from './processes/start.ts'
import { freshPath, receiverOver } from './sqlite-tests.ts'

// On a busy machine a process may not be scheduled for as long as a lock is held. Waiting for the lock would stall it each
// time.
const options = { timeout: 60_000, retry: 3 }

/** Measures the longest stall of the event loop, in ms. */
function stalls() {
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  return { longest: () => delay.max / 1e6 }
}

/** Opens a file with commits that do not wait for the disk, which may be slow for reasons of its own. */
function withoutDisk(path: string): SqliteDatabase {
  const database = openDatabase(path)
  return {
    exec: (sql) =>
      sql === 'PRAGMA synchronous = FULL' ? database.exec('PRAGMA synchronous = OFF') : database.exec(sql),
    prepare: (sql) => database.prepare(sql),
    close: () => database.close(),
  }
}

const mediaOf = (mediaId: string) => samplePayload('encoding.finished', { media_id: mediaId })

/** Sends a delivery to a receiver over the file every 10 ms. */
function sending(path: string) {
  const receiver = receiverOver({ database: withoutDisk(path) })
  const handled = new Set<string>()
  receiver.onAny(({ mediaId }) => void handled.add(mediaId), { name: 'handler' })
  const answers: Promise<{ readonly status: number }>[] = []
  const timer = setInterval(() => answers.push(deliver(receiver, mediaOf(`live ${answers.length}`))), 10)
  return {
    handled,
    /** Stops, and returns the status of every answer. */
    async stop() {
      clearInterval(timer)
      return (await Promise.all(answers)).map(({ status }) => status)
    },
  }
}

describe('while another process writes to the file', () => {
  test.each([
    ['holds its lock for 1.4 s', { holdMs: 1_400, delayMs: 200, times: 2 }],
    ['commits hundreds of times', { holdMs: 4, delayMs: 1, times: 300 }],
  ])(
    'and %s, the event loop continues and every delivery is accepted',
    options,
    async (_, { holdMs, delayMs, times }) => {
      const path = await freshPath()
      const { handled, stop } = sending(path)
      const { ended } = await startProgram('other-writer', [path, holdMs, delayMs, times])
      const stall = stalls()
      await ended
      const longest = stall.longest()
      const statuses = await stop()
      console.log(`the longest stall was ${longest.toFixed(0)} ms, over ${statuses.length} deliveries`)
      expect(statuses.filter((status) => status !== 200)).toEqual([])
      // Half as long as the lock is held, or the time of a hundred commits.
      expect(longest).toBeLessThan(700)
      await until(async () => handled.size === statuses.length)
    },
  )
})

/** Makes dead letters in a file that is closed again. */
async function makeDeadLetter(path: string, count: number) {
  const receiver = receiverOver({ path }, { retry: { attempts: 1 } })
  receiver.onAny(() => Promise.reject(new Error('no')), { name: 'handler' })
  await Promise.all(Array.from({ length: count }, (_, i) => deliver(receiver, mediaOf(`dead ${i}`))))
  await until(async () => (await receiver.inbox.stats()).deadLetters === count)
  await receiver.close()
}

const run = promisify(execFile)
const replayAll = (path: string) => {
  const program = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))
  return run(process.execPath, ['--import', 'tsx', program, 'inbox', path, 'replay', '--all'])
}

test(
  '3,000 dead letters that the command replays beside the inbox are handled within a second, and it continues',
  options,
  async () => {
    const path = await freshPath()
    await makeDeadLetter(path, 3_000)
    const { handled, stop } = sending(path)
    await pause(300)
    const longest = longestComputing()
    const { stdout } = await replayAll(path)
    const elapsed = ownTime()
    expect(stdout).toContain('3000 dead letters replayed')
    await until(async () => [...handled].filter((mediaId) => mediaId.startsWith('dead')).length === 3_000)
    const handledAfterMs = elapsed()
    const statuses = await stop()
    console.log(
      `the longest stall was ${longest().toFixed(0)} ms, the last was handled after ${handledAfterMs.toFixed(0)} ms`,
    )
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    expect(longest()).toBeLessThan(100)
    expect(handledAfterMs).toBeLessThan(1_000)
  },
)
