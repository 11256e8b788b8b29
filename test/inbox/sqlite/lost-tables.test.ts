import { rmSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../../src/inbox/sqlite/driver.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import { createReceiver, unverified } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { until } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { freshPath } from './sqlite-tests.ts'

const ours = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'inbox!_%' ESCAPE '!'"

/** Makes a receiver over an application's file, whose tables a tool drops that does not know them. */
async function subject() {
  const path = await freshPath()
  const tool = openDatabase(path)
  tool.exec('CREATE TABLE video (id TEXT)')
  onTestFinished(() => void tool.close())
  const drop = (...names: string[]) => {
    const all = (tool.prepare(ours).all() as { name: string }[]).map(({ name }) => name)
    for (const name of names.length > 0 ? names : all) tool.exec(`DROP TABLE ${name}`)
  }
  const open = () => {
    const { logger, lines } = recordingLogger()
    const receiver = createReceiver({ verify: unverified(), logger, inbox: sqliteInbox({ path }) })
    onTestFinished(() => receiver.close({ timeoutMs: 0 }).then(() => {}))
    receiver.onAny(() => {})
    const send = async () => (await deliver(receiver, samplePayload('encoding.finished'))).status
    return { receiver, lines, send }
  }
  return { path, tool, drop, open }
}

const dropped = {
  code: 'unavailable',
  message: expect.stringMatching(/tables of the inbox were dropped from .*drizzle-kit push/),
}

describe('a file whose tables another tool has dropped', () => {
  test.each([[[]], [['inbox_event']], [['inbox_schema']], [['inbox_owner', 'inbox_lane']]])(
    'is not opened as an empty inbox: %j',
    async (names) => {
      const { path, tool, drop, open } = await subject()
      const { receiver, send } = open()
      expect(await send()).toBe(200)
      await receiver.close()
      drop(...names)
      expect(open).toThrow(expect.objectContaining(dropped))
      expect(open).toThrow(expect.objectContaining(dropped))
      drop()
      rmSync(`${path}-lock`)
      expect(await open().send()).toBe(200)
      expect(tool.prepare('SELECT * FROM video').all()).toEqual([])
    },
  )

  test.each([[[]], [['inbox_event']], [['inbox_owner']]])(
    'is lost to the receiver that has it open, which says why: %j',
    async (names) => {
      const { drop, open } = await subject()
      const { lines, send } = open()
      expect(await send()).toBe(200)
      drop(...names)
      expect(await send()).toBe(503)
      const stopped = () => lines.find(({ message }) => message === 'the inbox lost its file and has stopped')
      await until(async () => stopped() !== undefined)
      expect(stopped()).toMatchObject({ level: 'error', details: { err: dropped } })
    },
  )
})

test('a file that was deleted begins as an empty inbox', async () => {
  const path = await freshPath()
  const open = () => createReceiver({ verify: unverified(), inbox: sqliteInbox({ path }) })
  await open().close()
  rmSync(path)
  await open().close()
})
