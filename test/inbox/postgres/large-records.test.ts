import { expect, test } from 'vitest'
import type { Database } from '../../../src/inbox/postgres/database.ts'
import { readExpected } from '../../../src/inbox/postgres/expectations.ts'
import { PostgresSettling } from '../../../src/inbox/postgres/settle.ts'
import type { Tables } from '../../../src/inbox/postgres/tables.ts'
import { eventOf } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'

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
  const host = { logger: silent, handlersOf: () => [], handlers: () => [] }
  const settling = new PostgresSettling(database as unknown as Database, host, {} as never, 1)
  const failures = [{ handler: 'a', message: 'x'.repeat(60_000) }]
  const dead = (id: number) =>
    new Promise<void>((resolve) => {
      const job = {
        id: `${id}`,
        releases: 0,
        key: `key ${id}`,
        number: 1,
        failedWith: () => failures,
        accepted: eventOf(`${id}`),
      }
      settling.deadLetter(job as never, { status: 'dead', completed: [], failures }, resolve)
    })
  await Promise.all(Array.from({ length: 50 }, (_, id) => dead(id)))
  await settling.settle()
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
