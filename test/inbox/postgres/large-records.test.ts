import { expect, test } from 'vitest'
import type { Database } from '../../../src/inbox/postgres/database.ts'
import { readExpected } from '../../../src/inbox/postgres/expectations.ts'
import { Records } from '../../../src/inbox/postgres/records.ts'
import type { Tables } from '../../../src/inbox/postgres/tables.ts'
import type { SqlJob } from '../../../src/inbox/sql/job.ts'
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
  const records = new Records(database as unknown as Database, () => [], 1)
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
    const expectation = JSON.stringify({ rule: 'rule', event, beganAt: 0, dueAt: index })
    return { expectation, due: `${index}`.padStart(3, '0'), hash: 'h' }
  })
  const read = async (_: string, [due, , limit]: [string, string, number]) => {
    const rows = all.filter((row) => due === '-infinity' || row.due > due).slice(0, limit)
    arrives(rows.reduce((sum, { expectation }) => sum + expectation.length, 0))
    return rows
  }
  const listed = await readExpected({ read } as unknown as Tables, 100)
  expect(listed.map(({ mediaId }) => mediaId)).toEqual(Array.from({ length: 100 }, (_, index) => `m ${index}`))
})
