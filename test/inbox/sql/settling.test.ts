import { expect, test } from 'vitest'
import type { SettledEvent } from '../../../src/inbox/sql/database.ts'
import type { HeldLane } from '../../../src/inbox/sql/lane.ts'
import { Settling, type SettlingOptions } from '../../../src/inbox/sql/settling.ts'
import { silent } from '../../support/silent.ts'

test('large failures are recorded although only half a megabyte arrives in time', async () => {
  const run = async ({ lanes, events }: { lanes: readonly { media: string }[]; events: readonly SettledEvent[] }) => {
    if (events.reduce((sum, { failed = '' }) => sum + failed.length, 0) > 500_000) throw new Error('timeout')
    return lanes.map(({ media }) => ({ media, readyInMs: 0 }))
  }
  const settle = (_: string, lanes: unknown, events: unknown) => ({ lanes, events })
  const database = { steps: { settle }, run, failure: () => 'timeout' } as unknown as SettlingOptions['database']
  const host = { logger: silent }
  const settling = new Settling({ database, host, released() {}, lost() {}, answered() {} })
  const lanes = Array.from({ length: 50 }, (_, index) => {
    const lane = { media: `${index}`, owner: 'me', state: 'held', isDirty: true, isInFlight: false }
    const unsettled = () => ({ lane: { media: lane.media }, events: [{ failed: 'x'.repeat(60_000) }] })
    const settled = () => (lane.isDirty = false)
    settling.add(Object.assign(lane, { unsettled, settled }) as unknown as HeldLane)
    return lane
  })
  await settling.idle()
  expect(lanes.filter(({ isDirty }) => isDirty)).toEqual([])
})
