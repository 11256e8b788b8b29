import { describe, expect, test } from 'vitest'
import type { HandlerContext, MediaEvent } from '../../../src/index.ts'
import { deliver, samplePayload } from '../../../src/testing/index.ts'
import { eventOf, until } from '../../support/inbox.ts'
import { seeded } from '../../support/seeded.ts'
import { testSeed } from '../../support/test-seed.ts'
import { crashed, freshPath, receiverOver, started } from './sqlite-tests.ts'

const nothingLeft = { waiting: 0, running: 0, retrying: 0, deadLetters: 0 }

describe('after a crash', () => {
  test('waiting and running events are handed over again', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path, concurrency: 1 })
    const keys = ['1', '2', '3', '4']
    for (const key of keys) await inbox.accept(eventOf(key))
    await calls.next()
    const next = started({ path: await crashed(path), concurrency: 1 })
    const handedOver: string[] = []
    for (const _ of keys) {
      const call = await next.calls.next()
      handedOver.push(call.event.key)
      expect(call).toMatchObject({ ...eventOf(call.event.key), attempt: { number: 1, completed: [] } })
      call.finish()
    }
    expect(handedOver.sort()).toEqual(keys)
    await until(async () => (await next.inbox.stats()).running === 0)
    expect(await next.inbox.stats()).toEqual(nothingLeft)
  })

  test('a handled event is not handed over, and is a duplicate', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path })
    await inbox.accept(eventOf('handled'))
    const call = await calls.next()
    call.finish()
    await until(async () => (await inbox.stats()).running === 0)
    const next = started({ path: await crashed(path) })
    expect(await next.inbox.accept(eventOf('handled'))).toBe('duplicate')
    await next.inbox.accept(eventOf('new'))
    expect((await next.calls.next()).event.key).toBe('new')
  })

  test('an event that may have been the cause, and is cut off by a close, is counted no crash', async () => {
    let path = await freshPath()
    const first = started({ path })
    await first.inbox.accept(eventOf('long'))
    await first.calls.next()
    path = await crashed(path)
    for (let closes = 0; closes < 12; closes++) {
      const { inbox, calls } = started({ path })
      await calls.next()
      await inbox.close({ timeoutMs: 0 })
    }
    const last = started({ path })
    expect((await last.calls.next()).event.key).toBe('long')
    expect(await last.inbox.stats()).toMatchObject({ running: 1, deadLetters: 0 })
  })

  test('an event whose process ended ten times is a dead letter', async () => {
    let path = await freshPath()
    const first = started({ path })
    await first.inbox.accept(eventOf('fatal'))
    await first.calls.next()
    for (let crashes = 1; crashes < 10; crashes++) {
      path = await crashed(path)
      const { calls } = started({ path })
      expect((await calls.next()).attempt.number).toBe(1)
    }
    const last = started({ path: await crashed(path) })
    await until(async () => (await last.inbox.stats()).deadLetters === 1)
    expect(await last.inbox.deadLetters.get('fatal')).toMatchObject({
      attempts: 1,
      completed: [],
      failures: [{ handler: 'none', message: 'the process crashed 10 times while handling it' }],
    })
    expect(last.deadLettered).toEqual(['fatal'])
    expect(last.lines).toContain('an event became a dead letter: the process crashed 10 times while handling it')
    expect(await last.inbox.deadLetters.replay('fatal')).toBe(true)
    expect((await last.calls.next()).event.key).toBe('fatal')
  })

  test('an attempt that ended is not counted among those that were cut off', async () => {
    let path = await freshPath()
    const first = started({ path })
    await first.inbox.accept(eventOf('slow'))
    await first.calls.next()
    for (let number = 1; number <= 12; number++) {
      path = await crashed(path)
      const { inbox, calls } = started({ path })
      const call = await calls.next()
      expect(call.attempt.number).toBe(number)
      call.finish({ status: 'retry', delayMs: 0, completed: [], failures: [] })
      // Its retry is on disk once a later event is.
      await calls.next()
      await inbox.accept(eventOf(`another ${number}`, 'media of slow'))
    }
  })

  test('an event waits until its retry is due, and keeps its attempts and completed handlers', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path })
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    const dueAt = Date.now() + 400
    call.finish({ status: 'retry', delayMs: 400, completed: ['a'], failures: [] })
    // Its retry is on disk once a later event is.
    await inbox.accept(eventOf('two'))
    const next = started({ path: await crashed(path) })
    expect((await next.calls.next()).event.key).toBe('two')
    expect(await next.inbox.stats()).toMatchObject({ retrying: 1 })
    const again = await next.calls.next()
    expect(Date.now()).toBeGreaterThanOrEqual(dueAt - 2)
    expect(again).toMatchObject({ ...eventOf('one'), attempt: { number: 2, completed: ['a'] } })
  })

  test('a handler that succeeded does not run again, and the next one, which was cut off, does', async () => {
    const path = await freshPath()
    const runs: string[] = []
    let start = () => {}
    const secondStarted = new Promise<void>((resolve) => {
      start = resolve
    })
    const before = receiverOver({ path })
    before.onAny(() => void runs.push('first'), { name: 'first' })
    before.onAny(
      (_, { signal }) => {
        start()
        return new Promise((_, reject) => signal.addEventListener('abort', reject))
      },
      { name: 'second' },
    )
    await deliver(before, samplePayload('encoding.finished'))
    await secondStarted
    const after = receiverOver({ path: await crashed(path) })
    after.onAny(() => void runs.push('first'), { name: 'first' })
    after.onAny(() => void runs.push('second'), { name: 'second' })
    await until(async () => runs.includes('second'))
    expect(runs).toEqual(['first', 'second'])
    await before.close({ timeoutMs: 0 })
  })

  test('handlers get the same event, in every field', async () => {
    const path = await freshPath()
    const body =
      '{"type":"partial.finished","media_id":"m","emitted_at":"2026-03-01T12:00:00.123456789Z","qualities":"360p",' +
      '"title":"\\ud83c\\udfac \\ud800 \\u0000","__proto__":{"polluted":true},"extra":[null,1.5,{"a":[]}],"user_id":null}'
    const seen: [MediaEvent, HandlerContext][] = []
    const before = receiverOver({ path }, { retry: { attempts: 2, baseMs: 1 } })
    before.on('partial.finished', (event, context) => {
      seen.push([event, context])
      return new Promise((_, reject) => context.signal.addEventListener('abort', reject))
    })
    await deliver(before, body)
    await until(async () => seen.length === 1)
    const after = receiverOver({ path: await crashed(path) })
    after.on('partial.finished', (event, context) => void seen.push([event, context]))
    await until(async () => seen.length === 2)
    expect(seen[1]?.[0]).toEqual(seen[0]?.[0])
    expect(Object.hasOwn(seen[1]?.[0].payload as object, '__proto__')).toBe(true)
    expect(seen[1]?.[1].receivedAt).toEqual(seen[0]?.[1].receivedAt)
    await before.close({ timeoutMs: 0 })
  })

  test('an event waits for a handler that is registered late', async () => {
    const path = await freshPath()
    const { inbox } = started({ path })
    await inbox.accept(eventOf('one'))
    const receiver = receiverOver({ path: await crashed(path) }, { retry: { attempts: 5, baseMs: 20 } })
    await until(async () => (await receiver.inbox.stats()).retrying === 1)
    const handled: string[] = []
    receiver.on('encoding.finished', ({ key }) => void handled.push(key))
    await until(async () => handled.length === 1)
    expect(handled).toEqual(['one'])
  })

  test('a dead letter is kept, and is handled once when it is replayed', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path })
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    call.finish({ status: 'dead', completed: ['a'], failures: [{ handler: 'b', message: 'Error: no' }] })
    await until(async () => (await inbox.stats()).deadLetters === 1)
    const second = started({ path: await crashed(path) })
    expect(await second.inbox.deadLetters.get('one')).toEqual(await inbox.deadLetters.get('one'))
    expect(await second.inbox.deadLetters.replay('one')).toBe(true)
    await second.calls.next()

    const third = started({ path: await crashed(path) })
    expect(await third.inbox.deadLetters.list()).toHaveLength(1)
    expect(await third.inbox.deadLetters.replay('one')).toBe(true)
    const replayed = await third.calls.next()
    expect(replayed.attempt).toMatchObject({ number: 1, completed: ['a'] })
    replayed.finish()
    await until(async () => (await third.inbox.stats()).running === 0)
    expect(await third.inbox.stats()).toEqual(nothingLeft)
    expect(await third.inbox.deadLetters.replay('one')).toBe(false)
  })
})

describe('when the inbox is closed', () => {
  test('waiting events are kept for the next process, and closing waits only for the running ones', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path })
    await inbox.accept(eventOf('retrying'))
    const retrying = await calls.next()
    retrying.finish({ status: 'retry', delayMs: 1_000, completed: ['a'], failures: [] })
    await inbox.accept(eventOf('running', 'media'))
    await inbox.accept(eventOf('waiting', 'media'))
    const running = await calls.next()
    const closed = inbox.close({ timeoutMs: 60_000 })
    running.finish()
    const { unfinished } = await closed
    expect(unfinished.map(({ event, state }) => [event.key, state]).sort()).toEqual([
      ['retrying', 'retrying'],
      ['waiting', 'waiting'],
    ])
    const next = started({ path })
    // On a busy machine the retry is due by now.
    const keys = [(await next.calls.next()).event.key, (await next.calls.next()).event.key]
    expect(keys.sort()).toEqual(['retrying', 'waiting'])
  })

  test('an event that fails during the close is kept with its retry', async () => {
    const path = await freshPath()
    const { inbox, calls } = started({ path })
    await inbox.accept(eventOf('one'))
    const call = await calls.next()
    const closed = inbox.close({ timeoutMs: 60_000 })
    call.finish({ status: 'retry', delayMs: 50, completed: ['a'], failures: [] })
    expect((await closed).unfinished).toMatchObject([{ ...eventOf('one'), state: 'retrying' }])
    const next = started({ path })
    expect((await next.calls.next()).attempt).toMatchObject({ number: 2, completed: ['a'] })
  })

  test.each([1, 2, 3])('every event that was acknowledged under load is handled once (%i)', async () => {
    const path = await freshPath()
    const handled: string[] = []
    const acknowledged = new Set<string>()
    const first = receiverOver({ path, concurrency: 4 })
    const random = seeded(testSeed())
    const handle = async ({ mediaId }: MediaEvent) => {
      await new Promise((resolve) => setTimeout(resolve, random() * 3))
      handled.push(mediaId)
    }
    first.onAny(handle)
    const sender = async () => {
      for (;;) {
        const mediaId = crypto.randomUUID()
        const { status } = await deliver(first, samplePayload('encoding.finished', { media_id: mediaId }))
        if (status !== 200) return
        acknowledged.add(mediaId)
      }
    }
    const sending = Promise.all(Array.from({ length: 20 }, sender))
    await until(async () => handled.length > 50)
    await first.close()
    await sending
    const second = receiverOver({ path })
    second.onAny(handle)
    await until(async () => handled.length === acknowledged.size)
    expect(new Set(handled)).toEqual(acknowledged)
  })
})
