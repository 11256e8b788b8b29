import { expect, test } from 'vitest'
import { until } from '../../support/inbox.ts'
import type { FromOwner } from './processes/first-owner.ts'
import { startProgram } from './processes/start.ts'
import { freshPath, started } from './sqlite-tests.ts'

/** Starts a process that has the file open, with two events that are being handled and one that waits. */
async function firstOwner(path: string) {
  const { child } = await startProgram('first-owner', [path])
  const told: FromOwner[] = []
  child.on('message', (message: FromOwner) => void told.push(message))
  const all = <Key extends keyof FromOwner>(key: Key) => told.flatMap((message) => message[key] ?? [])
  const deliver = async (mediaId: string) => {
    const before = all('answered').length
    child.send(mediaId)
    await until(async () => all('answered').length > before)
    return all('answered').at(-1)
  }
  for (const mediaId of ['running 1', 'running 2', 'last before the backup']) expect(await deliver(mediaId)).toBe(200)
  await until(async () => all('started').length === 2)
  return { all, deliver }
}

test('a process whose lock was released by a backup stops when another process opens the file', async () => {
  const path = await freshPath()
  const first = await firstOwner(path)
  const { calls } = started({ path })
  await until(async () => first.all('aborted').length === 2)
  expect(first.all('aborted')).toEqual(['lease_lost', 'lease_lost'])
  const handled: string[] = []
  for (let i = 0; i < 3; i++) {
    const call = await calls.next()
    handled.push(call.event.mediaId)
    call.finish()
  }
  expect(handled.sort()).toEqual(['last before the backup', 'running 1', 'running 2'])
  expect(await first.deliver('too late')).toBe(503)
  expect(await first.deliver('too late again')).toBe(503)
  expect(first.all('started')).toEqual(['running 1', 'running 2'])
  expect(first.all('logged').filter((line) => String(line).startsWith('the inbox lost its file'))).toHaveLength(1)
})

test('it also stops at its next delivery, before it has checked the file again', async () => {
  const path = await freshPath()
  const first = await firstOwner(path)
  started({ path })
  expect(await first.deliver('too late')).toBe(503)
  await until(async () => first.all('aborted').length === 2)
  expect(first.all('started')).toEqual(['running 1', 'running 2'])
})

test('the other process handles nothing until the first has stopped', async () => {
  const path = await freshPath()
  const first = await firstOwner(path)
  const { calls } = started({ path })
  await calls.next()
  const startedAt = Date.now()
  await until(async () => first.all('aborted').length === 2)
  expect(first.all('abortedAt').filter((at) => at > startedAt)).toEqual([])
})
