import { expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

const grows = (line: string) => line.startsWith("the inbox's WAL keeps growing")

test('a reader that never ends is told of once, and again after another one', async () => {
  const path = await freshPath()
  const { inbox, lines } = started({ path })
  const [reader, writer] = [openDatabase(path), openDatabase(path)]
  writer.exec('CREATE TABLE large (content BLOB)')
  const grow = async () => {
    reader.exec('BEGIN; SELECT count(*) FROM large')
    reader.prepare('SELECT count(*) FROM large').all()
    writer.exec('INSERT INTO large VALUES (zeroblob(70000000))')
  }
  await grow()
  await until(async () => lines.some(grows))
  await new Promise((resolve) => setTimeout(resolve, 600))
  expect(lines.filter(grows)).toHaveLength(1)
  reader.exec('COMMIT')
  await new Promise((resolve) => setTimeout(resolve, 600))
  expect(await inbox.accept(eventOf('one'))).toBe('accepted')
  await grow()
  await until(async () => lines.filter(grows).length === 2)
  reader.close()
  writer.close()
})
