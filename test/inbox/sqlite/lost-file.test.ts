import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { drivers, freshPath, receiverOver, started } from './sqlite-tests.ts'

const gone = /inbox\.db was deleted, moved or replaced while it was open: this process handles no more events/

const payloadOf = (mediaId: string) => samplePayload('encoding.finished', { media_id: mediaId })

const losses: readonly [string, (path: string) => Promise<void>][] = [
  ['deleted', (path) => rm(path)],
  ['moved', (path) => rename(path, `${path}.old`)],
  ['replaced by another file', replace],
  [
    'deleted, and another file is in its place,',
    async (path) => {
      await rm(path)
      await writeFile(path, '')
    },
  ],
]

async function replace(path: string): Promise<void> {
  await copyFile(path, `${path}.copy`)
  await rename(`${path}.copy`, path)
}

test.each(losses)('a file that is %s while it is open takes no more deliveries', async (_, lose) => {
  const path = await freshPath()
  const { logger, lines } = recordingLogger('info')
  const receiver = receiverOver({ path }, { logger })
  receiver.onAny(() => {})
  expect((await deliver(receiver, payloadOf('before'))).status).toBe(200)
  await lose(path)
  expect((await deliver(receiver, payloadOf('after'))).status).toBe(503)
  expect((await deliver(receiver, payloadOf('after'))).status).toBe(503)
  const told = lines.filter(({ message }) => message.startsWith('the inbox lost its file'))
  expect(told).toMatchObject([{ level: 'error', details: { err: { message: expect.stringMatching(gone) } } }])
})

test.each(['wal', 'shm'])('so does an inbox whose -%s is deleted, and no acknowledged event is lost', async (end) => {
  const path = await freshPath()
  const { inbox, calls, lines } = started({ path, concurrency: 1 })
  for (let i = 0; i < 25; i++) expect(await inbox.accept(eventOf(`before ${i}`))).toBe('accepted')
  await calls.next()
  await rm(`${path}-${end}`)
  await expect(inbox.accept(eventOf('after'))).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(`inbox.db-${end} was deleted, moved or replaced while it was open`),
  })
  expect(lines).toEqual(['the inbox lost its file and has stopped'])
  const copy = await freshPath()
  await copyFile(path, copy)
  if (end === 'shm') await copyFile(`${path}-wal`, `${copy}-wal`)
  expect(await started({ path: copy }).inbox.stats()).toMatchObject({ waiting: 25 })
})

test('handlers of a deleted file are stopped before the next delivery', async () => {
  const path = await freshPath()
  const { inbox, calls, lines } = started({ path })
  await inbox.accept(eventOf('one'))
  const call = await calls.next()
  await rm(path)
  await until(async () => call.attempt.aborted)
  expect(call.attempt.signal.reason).toMatchObject({ code: 'lease_lost', message: expect.stringMatching(gone) })
  await expect(inbox.accept(eventOf('one'))).rejects.toMatchObject({ code: 'unavailable' })
  expect(lines).toEqual(['the inbox lost its file and has stopped'])
})

test('a deleted folder takes its file with it', async () => {
  const folder = join(await temporaryFolder(), 'folder')
  await mkdir(folder)
  const { inbox } = started({ path: join(folder, 'inbox.db') })
  await inbox.accept(eventOf('one'))
  await rm(folder, { recursive: true })
  await expect(inbox.accept(eventOf('two'))).rejects.toMatchObject({ code: 'unavailable' })
})

test.each(Object.entries(drivers))('a connection of %s also notices it', async (_, open) => {
  const path = await freshPath()
  const { inbox } = started({ database: open(path) })
  await rm(path)
  await expect(inbox.accept(eventOf('one'))).rejects.toMatchObject({ message: expect.stringMatching(gone) })
})
