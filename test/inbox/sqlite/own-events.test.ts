import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { until } from '../../support/inbox.ts'
import { freshPath } from './sqlite-tests.ts'

test.each(['the inbox', 'the application'])(
  'an event of the application is handled once it commits on the connection of %s',
  async (whose) => {
    const path = await freshPath()
    const database = openDatabase(path)
    const receiver = createReceiver({ verify: unverified(), inbox: sqliteInbox({ database }) })
    const client = whose === 'the inbox' ? database : openDatabase(path)
    onTestFinished(async () => {
      await receiver.close()
      for (const each of new Set([client, database])) each.close()
    })
    const handled: string[] = []
    receiver.onAny(({ mediaId }) => void handled.push(mediaId))
    await receiver.ready()
    const accepted: Promise<string>[] = []
    for (const end of ['ROLLBACK', 'COMMIT']) {
      client.exec('BEGIN')
      accepted.push(receiver.accept({ type: 'encoding.finished', mediaId: end }, { client }))
      client.exec(end)
    }
    expect(await Promise.all(accepted)).toEqual(['accepted', 'accepted'])
    await until(async () => handled.length > 0)
    expect(handled).toEqual(['COMMIT'])
  },
)

test('a connection to another file is refused', async () => {
  const receiver = createReceiver({ verify: unverified(), inbox: sqliteInbox({ path: await freshPath() }) }).onAny(
    () => {},
  )
  const client = openDatabase(await freshPath())
  onTestFinished(async () => {
    await receiver.close()
    client.close()
  })
  const accepting = receiver.accept({ type: 'encoding.finished', mediaId: 'm' }, { client })
  await expect(accepting).rejects.toMatchObject({
    code: 'invalid_option',
    message: expect.stringContaining('where the inbox is'),
  })
})
