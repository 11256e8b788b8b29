import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import type { Handlers, MediaEvent } from '../../../src/index.ts'
import { deliver } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { silent } from '../../support/silent.ts'
import { future, genuine, opened, upgraded, url } from '../../support/unreadable.ts'
import { freshPath, receiverOver } from './sqlite-tests.ts'

describe('an unreadable delivery', () => {
  test('is parsed again by the inbox that has the file open when it is replayed beside it', async () => {
    const path = await freshPath()
    const { receiver, deadLetters, handled } = await opened(async (options) => receiverOver({ path }, options))
    await deliver(receiver, future, { url })
    const [deadLetter] = await deadLetters.list()
    const file = openInboxFile(path)
    expect(await file.deadLetters.replay(deadLetter?.key ?? '')).toBe(true)
    await upgraded(() => until(async () => handled.length === 1))
    expect(await file.deadLetters.list()).toEqual([])
    file.close()
  })
})

test('an unreadable delivery that was replayed beside the inbox and still cannot be parsed stays, and is parsed once', async () => {
  const path = await freshPath()
  const errors: object[] = []
  const log = (details: object, message: string) => {
    if (message === 'an unreadable delivery still cannot be parsed') errors.push(details)
  }
  const { receiver, deadLetters } = await opened(
    async (options) => receiverOver({ path }, { ...options, logger: { ...silent, error: log } }),
    genuine,
  )
  await deliver(receiver, future, { url })
  const [deadLetter] = await deadLetters.list()
  const file = openInboxFile(path)
  await file.deadLetters.replay(deadLetter?.key ?? '')
  await until(async () => errors.length === 1)
  expect(errors).toEqual([{ key: deadLetter?.key, err: expect.objectContaining({ code: 'malformed' }) }])
  // The inbox checks its marked deliveries whenever another process has written.
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, 300))
    const other = openDatabase(path)
    other.exec('DELETE FROM inbox_schema; INSERT INTO inbox_schema VALUES (1)')
    other.close()
  }
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(errors).toHaveLength(1)
  expect(await deadLetters.list()).toEqual([deadLetter])
  file.close()
})

describe('an unreadable delivery that was replayed while no inbox was open', () => {
  async function replayed() {
    const path = await freshPath()
    const { receiver, deadLetters } = await opened(async (options) => receiverOver({ path }, options))
    await deliver(receiver, future, { url })
    const [deadLetter] = await deadLetters.list()
    await receiver.close()
    const file = openInboxFile(path)
    await file.deadLetters.replay(deadLetter?.key ?? '')
    file.close()
    return path
  }

  test('is handled by the next inbox, or by the one after it if the next closes immediately', async () => {
    const path = await replayed()
    await upgraded(async () => receiverOver({ path }).close())
    const handled: MediaEvent[] = []
    const handlers: Handlers = { 'encoding.finished': (event) => void handled.push(event) }
    await upgraded(async () => {
      const { inbox } = receiverOver({ path }, { handlers })
      await until(async () => handled.length === 1)
      expect(await inbox.deadLetters.list()).toEqual([])
    })
  })

  test('stays while the file cannot be written', async () => {
    const path = await replayed()
    const errors: string[] = []
    const logger = { ...silent, error: (_: object, message: string) => void errors.push(message) }
    const receiver = receiverOver({ path }, { ...genuine, logger })
    // The open inbox replays the delivery once this turn has ended.
    const other = openDatabase(path)
    other.exec('BEGIN IMMEDIATE')
    await until(async () => errors.includes('the inbox could not start, and tries again'))
    other.exec('COMMIT')
    other.close()
    expect(await receiver.inbox.deadLetters.list()).toHaveLength(1)
    await receiver.close()
  })
})
