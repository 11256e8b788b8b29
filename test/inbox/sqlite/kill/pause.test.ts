import { afterEach, expect, test } from 'vitest'
import { sqliteInbox } from '../../../../src/inbox/sqlite.ts'
import { freshBody, send } from '../../../conformance/sending.ts'
import { temporaryFile } from '../fixture.ts'
import { startChild } from './start-child.ts'

const { path, remove } = await temporaryFile()
const child = await startChild(path)

afterEach(async () => {
  await child.kill()
  await remove()
})

test('a paused process keeps its file; it goes on when it is continued, and lets go when it is killed', async () => {
  const open = () => sqliteInbox({ path })
  process.kill(child.pid, 'SIGSTOP')
  expect(open).toThrow(/has it open/)
  process.kill(child.pid, 'SIGCONT')
  expect((await send(child.url, freshBody())).body).toBe('{"status":"accepted"}')
  expect(open).toThrow(/has it open/)
  await child.kill()
  await open().close()
})
