import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { openInboxFile, sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { type Handlers, type MediaEvent, memoryInbox } from '../../../src/index.ts'
import { until } from '../../../src/testing/contract/handling.ts'
import { deliver } from '../../../src/testing/index.ts'
import { silent } from '../../handlers/fixture.ts'
import { receiverWith } from '../../receiver/fixture.ts'
import { checkRefused, future, genuine, refusing, upgraded, url } from '../unreadable.ts'
import { freshPath, receiverOver } from './fixture.ts'

checkRefused(async (options) => receiverOver({ path: await freshPath() }, options))

describe('a delivery that is genuine and cannot be read', () => {
  test('is refused by a memory inbox, which keeps none', async () => {
    const receiver = receiverWith({ ...genuine, inbox: memoryInbox() })
    expect((await deliver(receiver, future, { url })).status).toBe(400)
    expect(await receiver.inbox.deadLetters.list()).toEqual([])
  })

  test('is read again by the inbox that has the file open, when it is replayed from outside', async () => {
    const path = await freshPath()
    const { receiver, letters, handled } = await refusing(async (options) => receiverOver({ path }, options))
    await deliver(receiver, future, { url })
    const [letter] = await letters.list()
    const file = openInboxFile(path)
    expect(file.deadLetters.replay(letter?.key ?? '')).toBe(true)
    await upgraded(() => until(async () => handled.length === 1))
    expect(file.deadLetters.list()).toEqual([])
    file.close()
  })
})

describe('one whose replay was asked for while nobody had the file open', () => {
  async function replayedFromOutside() {
    const path = await freshPath()
    const { receiver, letters } = await refusing(async (options) => receiverOver({ path }, options))
    await deliver(receiver, future, { url })
    const [letter] = await letters.list()
    await receiver.close()
    const file = openInboxFile(path)
    file.deadLetters.replay(letter?.key ?? '')
    file.close()
    return path
  }

  test('is handled by the next that opens the file, or by the one after it where that closes at once', async () => {
    const path = await replayedFromOutside()
    await upgraded(async () => receiverOver({ path }).close())
    const handled: MediaEvent[] = []
    const handlers: Handlers = { 'encoding.finished': (event) => void handled.push(event) }
    await upgraded(async () => {
      const { inbox } = receiverOver({ path }, { handlers })
      await until(async () => handled.length === 1)
      expect(await inbox.deadLetters.list()).toEqual([])
    })
  })

  test('stays where the file cannot be written', async () => {
    const path = await replayedFromOutside()
    const inbox = sqliteInbox({ path })
    const other = openDatabase(path)
    other.exec('BEGIN IMMEDIATE')
    const warnings: string[] = []
    const logger = { ...silent, warn: (_: object, message: string) => void warnings.push(message) }
    const receiver = receiverWith({ ...genuine, inbox, logger })
    await until(async () => warnings.includes('a refused delivery could not be replayed yet'))
    other.exec('COMMIT')
    other.close()
    expect(await inbox.deadLetters.list()).toHaveLength(1)
    await receiver.close()
  })
})
