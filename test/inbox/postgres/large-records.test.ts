import { expect, test } from 'vitest'
import type { Database } from '../../../src/inbox/postgres/database.ts'
import { PostgresRecords } from '../../../src/inbox/postgres/records.ts'
import { readExpected } from '../../../src/inbox/sql/expected.ts'
import type { SqlJob } from '../../../src/inbox/sql/job.ts'
import type { SqlTables } from '../../../src/inbox/sql/tables.ts'
import { eventOf } from '../../support/inbox.ts'

/** Throws as a statement does that does not arrive within its time. */
function arrives(bytes: number): void {
  if (bytes > 500_000) throw new Error('Query read timeout')
}

test('the records of large failures are written although only half a megabyte arrives in time', async () => {
  const query = async (_: string, [rows = '']: string[] = []) => {
    arrives(rows.length)
    return (JSON.parse(rows) as [id: string][]).map(([id]) => ({ id }))
  }
  const database = { schema: 's', channel: 's', query, measure: (_: string, run: () => unknown) => run() }
  const records = new PostgresRecords(database as unknown as Database, () => [], 1)
  const letter = 'x'.repeat(60_000)
  const jobs = Array.from({ length: 50 }, (_, id) => ({ id: `${id}`, releases: 0, key: `key ${id}` }))
  const settle = async (job: object): Promise<void> => {
    // The inbox tries again.
    while (!(await records.write({ kind: 'dead', job: job as SqlJob, completed: [], letter }).catch(() => false)));
  }
  await Promise.all(jobs.map(settle))
})

test('expectations of large events are listed although only half a megabyte arrives in time', async () => {
  const all = Array.from({ length: 100 }, (_, index) => {
    const event = { ...eventOf(`${index}`, `m ${index}`).event, title: 'x'.repeat(60_000) }
    return {
      rule: '"rule"',
      event: JSON.stringify(event),
      began_at: '0',
      due_at: `${index}`,
      place: `${index}`,
      hash: 'h',
    }
  })
  const read = async (_: string, [limit, after = -1]: readonly number[]) => {
    const rows = all.filter(({ place }) => Number(place) > after).slice(0, limit)
    arrives(rows.reduce((sum, { event }) => sum + event.length, 0))
    return rows
  }
  const same = (text: string) => text
  const listed = await readExpected({ read, json: same, ms: same } as unknown as SqlTables, 100)
  expect(listed.map(({ mediaId }) => mediaId)).toEqual(Array.from({ length: 100 }, (_, index) => `m ${index}`))
})
