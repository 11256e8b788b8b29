import { expect, onTestFinished, test } from 'vitest'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { openInbox } from '../../support/inbox.ts'
import { freshPath } from '../sqlite/sqlite-tests.ts'

test('an inbox keeps the newest 500 operations, and the first 500 events of each', async () => {
  const { inbox } = openInbox(sqliteInbox({ path: await freshPath() }))
  onTestFinished(async () => void (await inbox.close()))
  const { operations } = inbox
  const keys = Array.from({ length: 501 }, (_, index) => `key ${index}`)
  for (const handler of keys) await operations?.add({ act: 'pause', handler })
  const kept = (await operations?.list({ limit: 1_000 })) ?? []
  expect([kept.length, kept[0]?.handler, kept.at(-1)?.handler]).toEqual([500, 'key 500', 'key 1'])

  await operations?.add({ act: 'replay', keys })
  expect(await operations?.list({ key: 'key 499' })).toMatchObject([{ act: 'replay', count: 501 }])
  expect(await operations?.list({ key: 'key 500' })).toEqual([])
})
