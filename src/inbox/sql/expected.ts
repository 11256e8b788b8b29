import { type MaybePromise, whenever } from '../../internal/maybe-promise.ts'
import { checkLimit } from '../operations/page.ts'
import type { OpenExpectation } from '../reading.ts'
import type { Database } from './database.ts'
import { readHead } from './head.ts'
import { noRule } from './offered.ts'

interface ExpectationRow {
  readonly rule: string
  readonly head: string
  readonly began_at: number | string
  readonly due_at: number | string
}

/** Lists the open expectations due first. */
export function readExpected(
  database: Pick<Database, 'read' | 'dialect'>,
  limit?: number,
): MaybePromise<readonly OpenExpectation[]> {
  const { json, ms } = database.dialect
  const sql = `SELECT ${json('rule')} AS rule, ${json('head')} AS head, began_at, ${ms('due_at')} AS due_at
    FROM $expectation expectation WHERE ${json('rule')} <> '${noRule}' ORDER BY expectation.due_at, hash LIMIT $1`
  const rows = database.read<ExpectationRow>(sql, [checkLimit('expected', limit)])
  return whenever(rows, (found) => found.map(toExpectation))
}

const toExpectation = ({ rule, head, began_at: beganAt, due_at: dueAt }: ExpectationRow): OpenExpectation => ({
  rule: JSON.parse(rule),
  mediaId: readHead(head).mediaId,
  beganAt: new Date(Number(beganAt)),
  dueAt: new Date(Number(dueAt)),
})
