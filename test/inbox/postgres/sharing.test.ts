import { describe, expect, test, vi } from 'vitest'
import { findPostgres } from '../../support/postgres/find-postgres.ts'
import { accept, postgresTests } from './postgres-tests.ts'

describe.skipIf(!findPostgres())('a backlog of slow events', () => {
  const postgres = postgresTests()

  test.each([1, 4])('is shared by the processes (concurrency: %i)', async (concurrency) => {
    const front = postgres.receiver({ handles: false }).onAny(() => {})
    await front.ready()
    const events = 16 * concurrency
    for (let index = 0; index < events; index++) await accept(front, `media ${index}`)
    const handled = [0, 0, 0, 0]
    const receivers = handled.map((_, process) =>
      postgres.receiver({ concurrency }).onAny(
        async () => {
          await new Promise((resolve) => setTimeout(resolve, 150))
          handled[process] = (handled[process] as number) + 1
        },
        { name: 'handle' },
      ),
    )
    await Promise.all(receivers.map((receiver) => receiver.ready()))
    await vi.waitFor(() => expect(handled.reduce((a, b) => a + b)).toBe(events), 20_000)
    // Nearly a quarter each, if all of them start at the same time.
    expect(Math.max(...handled)).toBeLessThan(events / 2)
    expect(Math.min(...handled)).toBeGreaterThan(events / 16)
  })
})
