import { describe, expect, test } from 'vitest'
import type { Pauses } from '../../src/inbox/reading.ts'
import type { Receiver, ReceiverOptions } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { until } from '../support/inbox.ts'

/** Tests of the handlers that operators pause, with an inbox of any kind. The receiver is closed after the test. */
export function pausing(open: (options: Pick<ReceiverOptions, 'retry'>) => Promise<Receiver>): void {
  /** Opens a receiver with the handlers `a` and `b`, and records their runs. */
  async function start(handle: (name: string) => unknown = () => {}, retry: ReceiverOptions['retry'] = {}) {
    const receiver = await open({ retry })
    const runs: string[] = []
    for (const name of ['a', 'b']) {
      const handler = async ({ userId }: { userId?: string | undefined }, { attempt }: { attempt: number }) => {
        runs.push(`${name} of ${userId}, attempt ${attempt}`)
        await handle(name)
      }
      receiver.on('encoding.finished', handler, { name })
    }
    await receiver.ready()
    const accept = (userId: string) =>
      deliver(receiver, samplePayload('encoding.finished', { media_id: 'media', user_id: userId }))
    const isEmpty = async () => {
      const { waiting, running, retrying } = await receiver.inbox.stats()
      return waiting + running + retrying === 0
    }
    return { receiver, inbox: receiver.inbox, pauses: receiver.inbox.pauses as Pauses, runs, accept, isEmpty }
  }

  describe('a paused handler', () => {
    test('is left out, and runs once it is resumed: the others run, and later events do not wait', async () => {
      const { inbox, pauses, runs, accept, isEmpty } = await start()
      await pauses.pause({ handler: 'a' })
      await accept('1')
      await accept('2')
      await until(async () => (await inbox.stats()).retrying === 2)
      expect(runs.toSorted()).toEqual(['b of 1, attempt 1', 'b of 2, attempt 1'])
      await pauses.resume({ handler: 'a' })
      await until(isEmpty)
      expect(runs.slice(2).toSorted()).toEqual(['a of 1, attempt 1', 'a of 2, attempt 1'])
      expect(await inbox.stats()).toMatchObject({ deadLetters: 0 })
    })

    test('does not change the schedule of another one that fails', async () => {
      let failures = 0
      const { pauses, runs, accept, isEmpty, inbox } = await start(
        (name) => {
          if (name === 'b' && ++failures < 3) throw new Error('not yet')
        },
        { baseMs: 1 },
      )
      await pauses.pause({ handler: 'a' })
      await accept('1')
      await until(async () => runs.length === 3)
      expect(runs).toEqual(['b of 1, attempt 1', 'b of 1, attempt 2', 'b of 1, attempt 3'])
      await until(async () => (await inbox.stats()).retrying === 1)
      await pauses.resume({ handler: 'a' })
      await until(isEmpty)
      expect(runs.slice(3)).toEqual(['a of 1, attempt 3'])
    })

    test('keeps its run when another one has failed permanently', async () => {
      const { pauses, runs, accept, inbox } = await start(
        (name) => {
          if (name === 'b') throw new Error('no')
        },
        { attempts: 1 },
      )
      await pauses.pause({ handler: 'a' })
      await accept('1')
      await until(async () => (await inbox.stats()).deadLetters === 1)
      await pauses.resume({ handler: 'a' })
      const [deadLetter] = await inbox.deadLetters.list()
      expect(deadLetter).toMatchObject({ completed: [], failures: [{ handler: 'b' }] })
      await inbox.deadLetters.replay(deadLetter?.key ?? '')
      await until(async () => runs.includes('a of 1, attempt 1'))
    })

    test('is also left out if it is the handler of an expectation', async () => {
      const { receiver, inbox, pauses, accept, isEmpty } = await start()
      let overdue = 0
      const rule = { then: 'encoding.failed', within: 1, name: 'late' } as const
      receiver.expect('encoding.finished', rule, () => void overdue++)
      await pauses.pause({ handler: 'late' })
      await accept('1')
      await until(async () => (await inbox.stats()).retrying === 1)
      expect(overdue).toBe(0)
      await pauses.resume({ handler: 'late' })
      await until(isEmpty)
      expect(overdue).toBe(1)
    })
  })
}
