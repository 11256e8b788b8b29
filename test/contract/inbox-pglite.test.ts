import { PGlite } from '@electric-sql/pglite'
import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pgliteInbox } from '../../src/inbox/pglite.ts'
import { everyFeature } from './every-feature.ts'
import { inboxContract } from './suites/inbox.ts'

describe('pgliteInbox', () => {
  let db: PGlite
  let subjects = 0
  beforeAll(async () => {
    db = await PGlite.create()
    await db.exec('CREATE TABLE written (subject int, content text)')
  })
  afterAll(() => db.close())

  const subject = () => {
    const number = ++subjects
    const write = (client: PoolClient, text: string) =>
      client.query('INSERT INTO public.written VALUES ($1, $2)', [number, text])
    const texts = async () => {
      const { rows } = await db.query<{ content: string }>('SELECT content FROM written WHERE subject = $1', [number])
      return rows.map(({ content }) => content)
    }
    const run = (client: PoolClient, sql: string) => client.query(sql)
    const own = (end: string, run: (client: object) => unknown) =>
      db.transaction(async (client) => {
        await run(client)
        if (end === 'ROLLBACK') await client.rollback()
      })
    return { inbox: pgliteInbox({ db, schema: `subject ${number}` }), transactions: { write, texts, run, own } }
  }
  inboxContract(subject, { test, expect }, everyFeature)
})
