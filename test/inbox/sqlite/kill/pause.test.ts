import { afterEach, expect, test } from 'vitest'
import { freshBody, send } from '../../../conformance/sending.ts'
import { started, temporaryFile } from '../fixture.ts'
import { startChild } from './start-child.ts'

const { path, remove } = await temporaryFile()
const child = await startChild(path)

afterEach(async () => {
  await child.kill()
  await remove()
})

test('a paused process keeps its file, continues when it is resumed, and frees it when it is killed', async () => {
  const open = () => started({ path })
  process.kill(child.pid, 'SIGSTOP')
  expect(open).toThrow(/has it open/)
  process.kill(child.pid, 'SIGCONT')
  expect((await send(child.url, freshBody())).body).toBe('{"status":"accepted"}')
  expect(open).toThrow(/has it open/)
  await child.kill()
  await open().inbox.close()
})
