import { readdir } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { expect, test } from 'vitest'
import { eventOf } from '../../support/inbox.ts'
import { drivers, freshPath, started } from './sqlite-tests.ts'

const filesBeside = async (path: string) =>
  (await readdir(dirname(path))).map((name) => name.replace(basename(path), '')).sort()

test.each(Object.entries(drivers))('the lock of an inbox is one file, with %s', async (_, open) => {
  const path = await freshPath()
  const database = open(path)
  const { inbox } = started({ database })
  await inbox.accept(eventOf('one'))
  expect(await filesBeside(path)).toEqual(['', '-lock', '-shm', '-wal'])
  expect(database.prepare('PRAGMA main.journal_mode').get()).toMatchObject({ journal_mode: 'wal' })
  expect(database.prepare('PRAGMA inbox_lock.journal_mode').get()).toMatchObject({ journal_mode: 'memory' })
})
