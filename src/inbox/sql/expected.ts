import { limitOf } from '../operations/page.ts'
import type { OpenExpectation } from '../reading.ts'
import { BatchReader } from './batch-reader.ts'
import type { SqlTables, SyncTables, Value } from './tables.ts'

interface ExpectationRow {
  readonly hash: string
  readonly rule: string
  readonly event: string
  readonly began_at: number | string
  readonly due_at: number | string
  /** The deadline as JSON, in the full precision of its column. */
  readonly place: string
}

/** Selects open expectations by deadline, after the position in `$2` and `$3`. */
const select = ({ json, ms }: SqlTables, isFirst: boolean): string => `
  SELECT hash, ${json('rule')} AS rule, ${json('event')} AS event, began_at, ${ms('due_at')} AS due_at, ${json('due_at')} AS place
  FROM $expectation ${isFirst ? '' : 'WHERE (due_at, hash) > ($2, $3)'} ORDER BY due_at, hash LIMIT $1`

const toExpectation = ({ rule, event, began_at: beganAt, due_at: dueAt }: ExpectationRow): OpenExpectation => ({
  rule: JSON.parse(rule),
  mediaId: JSON.parse(event).mediaId,
  beganAt: new Date(Number(beganAt)),
  dueAt: new Date(Number(dueAt)),
})

export async function readExpected(tables: SqlTables, limit?: number): Promise<readonly OpenExpectation[]> {
  const max = limitOf('expected', limit)
  const found: OpenExpectation[] = []
  const reader = new BatchReader(max)
  for (let last: ExpectationRow | undefined; found.length < max; ) {
    let requested = 0
    const rows = await reader.run(async (size) => {
      requested = Math.min(size, max - found.length)
      const place: Value[] = last === undefined ? [] : [JSON.parse(last.place), last.hash]
      return tables.read<ExpectationRow>(select(tables, last === undefined), [requested, ...place])
    })
    found.push(...rows.map(toExpectation))
    if (rows.length < requested) break
    last = rows.at(-1)
  }
  return found
}

/** Synchronous {@link readExpected}, without batches. */
export const readExpectedNow = (tables: SyncTables, limit?: number): readonly OpenExpectation[] =>
  tables.read<ExpectationRow>(select(tables, true), [limitOf('expected', limit)]).map(toExpectation)
