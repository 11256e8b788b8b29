import { expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { eventOf } from '../../support/inbox.ts'
import { checkProgressIsStored } from '../stored-progress.ts'
import { freshPath, receiverOver, started } from './sqlite-tests.ts'

test('a handler begins only once the success of the previous one is in the file', async () => {
  const path = await freshPath()
  const receiver = receiverOver({ path })
  const other = openDatabase(path)
  await checkProgressIsStored(receiver, {
    block: () => other.exec('BEGIN IMMEDIATE'),
    unblock: () => other.exec('COMMIT'),
    completed: () =>
      JSON.parse((other.prepare('SELECT completed FROM inbox_event').get() as { completed: string }).completed),
  })
  other.close()
})

test('a handler that has succeeded is in the file as soon as the inbox says so', async () => {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  await inbox.accept(eventOf('one'))
  const { attempt } = await calls.next()
  const file = openDatabase(path)
  for (const handler of ['first', 'second']) {
    await attempt.succeeded?.(handler)
    const { completed } = file.prepare('SELECT completed FROM inbox_event').get() as { completed: string }
    expect(JSON.parse(completed)).toContain(handler)
  }
  file.close()
})
