import { describe, expect, test } from 'vitest'
import { openInboxFile } from '../../../src/inbox/sqlite.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { freshPath, started } from './sqlite-tests.ts'

/** Opens an inbox with a dead letter, and its file beside it. */
async function withDeadLetter() {
  const path = await freshPath()
  const { inbox, calls } = started({ path })
  await inbox.accept(eventOf('dead'))
  const call = await calls.next()
  call.finish({ status: 'dead', completed: ['a'], failures: [{ handler: 'b', message: 'Error: no' }] })
  await until(async () => (await inbox.stats()).deadLetters === 1)
  return { path, inbox, calls, file: openInboxFile(path) }
}

describe('beside the inbox that has the file open', () => {
  test('its events are counted', async () => {
    const { inbox, calls, file } = await withDeadLetter()
    await inbox.accept(eventOf('retrying'))
    const call = await calls.next()
    call.finish({ status: 'retry', delayMs: 60_000, completed: [], failures: [] })
    await inbox.accept(eventOf('running', 'media'))
    await inbox.accept(eventOf('waiting', 'media'))
    expect(file.stats()).toMatchObject({ waiting: 2, running: 0, retrying: 1, deadLetters: 1 })
    file.close()
  })

  test('its dead letters are read', async () => {
    const { inbox, file } = await withDeadLetter()
    expect(await file.deadLetters.list()).toEqual(await inbox.deadLetters.list())
    expect(await file.deadLetters.get('dead')).toEqual(await inbox.deadLetters.get('dead'))
    expect(await file.deadLetters.list({ offset: 1 })).toEqual([])
    expect(await file.deadLetters.get('unknown')).toBe(undefined)
    file.close()
  })

  test('the keys of its dead letters are listed, the oldest first', async () => {
    const { inbox, calls, file } = await withDeadLetter()
    await inbox.accept(eventOf('later'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [] })
    await until(async () => (await inbox.stats()).deadLetters === 2)
    expect(await file.deadLetters.keys()).toEqual(['dead', 'later'])
    expect((await file.deadLetters.list()).map(({ key }) => key)).toEqual(['later', 'dead'])
    file.close()
  })

  test('a replayed dead letter is handled once by that inbox', async () => {
    const { inbox, calls, file } = await withDeadLetter()
    expect(await file.deadLetters.replay('dead')).toBe(true)
    expect(await file.deadLetters.replay('dead')).toBe(false)
    const call = await calls.next()
    expect(call).toMatchObject({ ...eventOf('dead'), attempt: { number: 1, completed: ['a'] } })
    // Every write makes the inbox check the file again.
    expect(await file.deadLetters.discard('dead')).toBe(false)
    await inbox.accept(eventOf('next'))
    expect((await calls.next()).event.key).toBe('next')
    call.finish()
    await until(async () => (await inbox.stats()).running === 1)
    expect(file.stats()).toMatchObject({ waiting: 1, running: 0, retrying: 0, deadLetters: 0 })
    file.close()
  })

  test('a dead letter is discarded', async () => {
    const { inbox, file } = await withDeadLetter()
    expect(await file.deadLetters.discard('dead')).toBe(true)
    expect(await inbox.stats()).toMatchObject({ deadLetters: 0 })
    expect(await inbox.deadLetters.replay('dead')).toBe(false)
    file.close()
  })

  test('a dead letter that was replayed while no inbox is open waits for the next one', async () => {
    const { path, inbox, file } = await withDeadLetter()
    await inbox.close()
    expect(await file.deadLetters.replay('dead')).toBe(true)
    expect(file.stats()).toMatchObject({ waiting: 1, running: 0, retrying: 0, deadLetters: 0 })
    file.close()
    const { calls } = started({ path })
    expect((await calls.next()).event.key).toBe('dead')
  })

  test('many dead letters are discarded at once', async () => {
    const { inbox, calls, file } = await withDeadLetter()
    await inbox.accept(eventOf('other'))
    ;(await calls.next()).finish({ status: 'dead', completed: [], failures: [] })
    await until(async () => (await inbox.stats()).deadLetters === 2)
    expect(await file.deadLetters.discardMany(['other', 'unknown', 'dead'])).toEqual(['other', 'dead'])
    expect(await file.deadLetters.keys()).toEqual([])
    file.close()
  })
})
