import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { freshBody, send } from '../../conformance/sending.ts'
import { Killed } from '../kill/killed.ts'
import { bundled } from '../postgres/forked.ts'
import type { FileTask } from './kill/child.ts'
import { openWritten } from './kill/written.ts'
import { started } from './sqlite-tests.ts'

const folder = await mkdtemp(join(tmpdir(), 'sqlite-inbox-'))
const path = join(folder, 'inbox.db')
openWritten(path).database.close()
const task: FileTask = { name: 'paused', folder, seed: 1, path, isGiven: false }
const child = await Killed.start(await bundled(new URL('./kill/child.ts', import.meta.url), folder), task)

afterEach(async () => {
  await child.end()
  await rm(folder, { recursive: true })
})

test('a paused process keeps its file, continues when it is resumed, and frees it when it is killed', async () => {
  const open = () => started({ path })
  const [url] = child.urls as [string]
  child.pause()
  expect(open).toThrow(/has it open|holds a lock/)
  child.resume()
  expect((await send(url, freshBody())).body).toBe('{"status":"accepted"}')
  expect(open).toThrow(/has it open/)
  await child.end()
  await open().inbox.close()
})
