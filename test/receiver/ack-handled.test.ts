import { existsSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { bullmqInbox } from '../../src/inbox/bullmq.ts'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import type { RunReport } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { signalled } from '../support/signalled.ts'
import { answeringInbox, receiverWith } from './listening-receiver.ts'

const payload = samplePayload('encoding.finished')
const marker = 'error-marker-6e4d'

describe("ack: 'handled'", () => {
  test('answers once every handler has finished', async () => {
    const finish = signalled()
    const order: string[] = []
    const receiver = receiverWith({ ack: 'handled' })
      .on('encoding.finished', () => finish.promise.then(() => order.push('first')))
      .onAny(async () => void order.push('second'))
    const answer = deliver(receiver, payload).then(({ outcome }) => order.push(outcome))
    finish.resolve()
    await answer
    expect(order).toEqual(['first', 'second', 'handled'])
  })

  test('answers 503 closing, not a failure, for an event that closing cuts off', async () => {
    const started = signalled()
    const receiver = receiverWith({ ack: 'handled' }).onAny(() => {
      started.resolve()
      return new Promise(() => {})
    })
    const answer = deliver(receiver, payload)
    await started.promise
    await receiver.close({ timeoutMs: 1 })
    expect(await answer).toMatchObject({ status: 503, outcome: 'closing' })
  })

  test('answers duplicate to an event that was handled before', async () => {
    let runs = 0
    const receiver = receiverWith({ ack: 'handled' }).onAny(() => runs++)
    expect((await deliver(receiver, payload)).outcome).toBe('handled')
    expect(await deliver(receiver, payload)).toMatchObject({ status: 200, outcome: 'duplicate' })
    expect(runs).toBe(1)
  })

  test('answers 500 without the error when a handler fails, and reports the error to the user', async () => {
    const reports: RunReport[] = []
    const errors: unknown[] = []
    const error = new Error(marker)
    const receiver = receiverWith({ ack: 'handled', hooks: { handling: (report) => void reports.push(report) } })
      .onAny(() => Promise.reject(error), { name: 'failing' })
      .onError((error, handling) => errors.push([error, handling.willRetry]))
    const { status, body } = await deliver(receiver, payload)
    expect(status).toBe(500)
    expect(JSON.parse(body)).toEqual({ status: 'error', code: 'handler_failed', message: 'a handler failed' })
    expect(reports).toMatchObject([{ outcome: 'failed', handler: 'failing', error }])
    expect(errors).toEqual([[error, false]])
    expect(await receiver.inbox.stats()).toEqual({ waiting: 0, running: 0, retrying: 0, deadLetters: 0 })
  })

  test('runs the handlers that failed again at the next delivery, and no others', async () => {
    const runs: string[] = []
    const receiver = receiverWith({ ack: 'handled' })
      .onAny((_, { attempt }) => runs.push(`good ${attempt}`))
      .onAny((_, { attempt }) => {
        runs.push(`bad ${attempt}`)
        if (attempt < 3) throw new Error(marker)
      })
      .onAny((_, { attempt }) => runs.push(`last ${attempt}`))
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await deliver(receiver, payload)).outcome)
    expect(statuses).toEqual(['handler_failed', 'handler_failed', 'handled', 'duplicate'])
    expect(runs).toEqual(['good 1', 'bad 1', 'last 1', 'bad 2', 'bad 3'])
  })

  test.each([
    ['success', 'handled', async () => {}],
    ['failure', 'handler_failed', () => Promise.reject(new Error(marker))],
  ])('shares %s with the duplicates that arrive in the meantime', async (_, outcome, end) => {
    const started = signalled()
    const finish = signalled()
    let runs = 0
    const receiver = receiverWith({ ack: 'handled' }).onAny(async () => {
      runs++
      started.resolve()
      await finish.promise
      await end()
    })
    const answers = [deliver(receiver, payload), deliver(receiver, payload)]
    await started.promise
    answers.push(deliver(receiver, payload))
    finish.resolve()
    expect((await Promise.all(answers)).map((answer) => answer.outcome)).toEqual([outcome, outcome, outcome])
    expect(runs).toBe(1)
  })

  test('answers 503 after ackTimeoutMs while the handler continues, and 200 once it has finished', async () => {
    const finish = signalled()
    const finished = signalled<boolean>()
    const receiver = receiverWith({ ack: 'handled', ackTimeoutMs: 20 }).onAny(async (_, { signal }) => {
      await finish.promise
      finished.resolve(signal.aborted)
    })
    const startedAt = performance.now()
    const first = await deliver(receiver, payload)
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(19)
    expect(first).toMatchObject({ status: 503, outcome: 'in_progress', headers: { 'retry-after': '3' } })
    expect((await deliver(receiver, payload)).outcome).toBe('in_progress')
    finish.resolve()
    expect(await finished.promise).toBe(false)
    await first.handled
    expect(await deliver(receiver, payload)).toMatchObject({ status: 200, outcome: 'duplicate' })
  })

  test('answers 500 for a handler that exceeds its time limit', async () => {
    const receiver = receiverWith({ ack: 'handled', handlerTimeoutMs: 5 }).onAny(() => new Promise(() => {}))
    expect((await deliver(receiver, payload)).outcome).toBe('handler_failed')
  })

  test('answers 503 overloaded when the inbox is full', async () => {
    const inbox = { ...answeringInbox(() => 'accepted', { handleNow: async () => 'overloaded' }), handlesNow: true }
    const answer = await deliver(
      receiverWith({ ack: 'handled', inbox }).onAny(() => {}),
      payload,
    )
    expect(answer).toMatchObject({ status: 503, outcome: 'overloaded' })
  })

  test('needs no waitUntil', async () => {
    const receiver = receiverWith({ ack: 'handled' }).onAny(() => {})
    const body = new TextEncoder().encode(JSON.stringify(payload))
    expect((await receiver.receive({ method: 'POST', url: '/', headers: new Headers(), body })).outcome).toBe('handled')
  })

  test('ignores types without a handler', async () => {
    const receiver = receiverWith({ ack: 'handled' }).on('encoding.failed', () => {})
    expect((await deliver(receiver, payload)).outcome).toBe('ignored')
  })

  test('keeps the runtime alive until the handlers have ended, however they end', async () => {
    const ends: Promise<unknown>[] = []
    const receiver = receiverWith({ ack: 'handled' }).onAny(() => Promise.reject(new Error(marker)))
    const body = new TextEncoder().encode(JSON.stringify(payload))
    const delivery = { method: 'POST', url: '/', headers: new Headers(), body }
    await receiver.receive({ ...delivery, waitUntil: (promise) => void ends.push(promise) })
    expect(ends).toHaveLength(1)
    await expect(ends[0]).resolves.not.toThrow()
  })

  test.each([
    ['sqliteInbox', (path: string) => sqliteInbox({ path })],
    ['bullmqInbox', () => bullmqInbox({ connection: 'redis://127.0.0.1:1' })],
    ['answeringInbox', () => answeringInbox(() => 'accepted')],
  ])('does not work with %s, which is not opened', async (name, define) => {
    const path = await freshPath()
    const definition = define(path)
    const open = vi.spyOn(definition, 'open')
    const build = () => receiverWith({ ack: 'handled', inbox: definition })
    expect(build).toThrow(expect.objectContaining({ code: 'invalid_option' }))
    expect(build).toThrow(`ack 'handled' works with the memory inbox only, not with ${name}`)
    expect(open).not.toHaveBeenCalled()
    expect(existsSync(path)).toBe(false)
  })
})
