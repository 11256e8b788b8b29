import { describe, expect, test } from 'vitest'
import { PermanentFailure, type Receiver, type ReceiverOptions } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { until } from '../support/inbox.ts'
import { recordingLogger } from '../support/recording-logger.ts'

/** Options of a process that the tests use. */
export interface ProcessOptions {
  readonly handles?: boolean
  readonly leaseMs?: number
  readonly ttlMs?: number
}

/** Opens a receiver in the storage of the current test. It is closed after the test. */
export type OpenProcess = (
  inbox: ProcessOptions,
  options: Pick<ReceiverOptions, 'logger' | 'hooks' | 'retry'>,
) => Promise<Receiver>

/** Tests of an inbox that processes with different handlers share. */
export function owedHandlers(open: OpenProcess): void {
  /** Opens a process, and the runs of its handlers. */
  async function start(handlers: readonly string[], inbox: ProcessOptions = {}, handle = async (_: string) => {}) {
    const runs: { handler: string; key: string; attempt: number }[] = []
    const outcomes: string[] = []
    const { logger, lines } = recordingLogger('warn')
    const hooks = { attempt: ({ outcome }: { outcome: string }) => void outcomes.push(outcome) }
    const receiver = await open(inbox, { logger, hooks, retry: { attempts: 1 } })
    const add = (name: string) =>
      receiver.on(
        'encoding.finished',
        async ({ key }, { attempt }) => {
          await handle(name)
          runs.push({ handler: name, key, attempt })
        },
        { name },
      )
    for (const name of handlers) add(name)
    await receiver.ready()
    /** The warnings that an event ended without a handler. */
    const warnings = () => lines.filter(({ message }) => message.includes('any more'))
    return { receiver, runs, outcomes, add, warnings }
  }

  /** On a busy machine the storage may not answer in time: then the delivery is repeated, as a sender would. */
  const acceptOne = async (receiver: Receiver, mediaId: string) => {
    const payload = samplePayload('encoding.finished', { media_id: mediaId })
    await until(async () => (await deliver(receiver, payload)).status === 200)
  }
  const accept = (receiver: Receiver, count: number, name = 'media') =>
    Promise.all(Array.from({ length: count }, (_, index) => acceptOne(receiver, `${name} ${index}`)))
  const isEmpty =
    ({ inbox }: Receiver) =>
    async () => {
      const { waiting, running, retrying } = await inbox.stats()
      return waiting + running + retrying === 0
    }
  const hasLeft = ({ inbox }: Receiver) => until(async () => (await inbox.stats()).retrying > 0)

  describe('handlers that an event owes', () => {
    test('are none if only an expectation is about it, and a process without its rule lets it be handled', async () => {
      const old = await start([])
      const front = await start([], { handles: false })
      front.receiver.expect('encoding.finished', { then: 'encoding.failed', within: '1 h' }, () => {})
      await accept(front.receiver, 3)
      await until(isEmpty(old.receiver))
      expect(old.outcomes).toEqual(['handled', 'handled', 'handled'])
      expect(await old.receiver.inbox.stats()).toMatchObject({ deadLetters: 0, expected: 3 })
    })

    test('run once each, while a process without one of them also runs', async () => {
      // There are more events than v2 takes while its handlers wait, so that v1 gets some.
      const count = 200
      let goOn = () => {}
      const v1HasLeft = new Promise<void>((resolve) => {
        goOn = resolve
      })
      const v1 = await start(['a'])
      const v2 = await start(['a', 'b'], {}, () => v1HasLeft)
      await accept(v2.receiver, count)
      await hasLeft(v1.receiver)
      goOn()
      await until(isEmpty(v1.receiver))
      const runs = [...v1.runs, ...v2.runs]
      for (const name of ['a', 'b']) {
        const keys = runs.filter(({ handler }) => handler === name).map(({ key }) => key)
        expect([keys.length, new Set(keys).size]).toEqual([count, count])
      }
      // Leaving an event does not count as an attempt, and only its end counts as handled.
      expect(runs.filter(({ attempt }) => attempt > 1)).toEqual([])
      expect(v1.outcomes).toContain('released')
      expect([...v1.outcomes, ...v2.outcomes].filter((outcome) => outcome === 'handled')).toHaveLength(count)
      expect([...v1.warnings(), ...v2.warnings()]).toEqual([])
    })

    test('are left out once they are removed, with a warning that names them', async () => {
      const v2 = await start(['a', 'b'], { leaseMs: 600_000 }, () => new Promise(() => {}))
      await accept(v2.receiver, 10)
      await v2.receiver.close({ timeoutMs: 0 })
      const v1 = await start(['a'], { leaseMs: 3_000 })
      await until(isEmpty(v1.receiver))
      expect(v1.runs.map(({ handler, attempt }) => [handler, attempt])).toEqual(Array(10).fill(['a', 1]))
      expect(await v1.receiver.inbox.stats()).toMatchObject({ deadLetters: 0 })
      expect(v1.warnings().map(({ level, details }) => [level, details.handler, details.events])).toEqual([
        ['warn', 'b', 1],
        ['warn', 'b', 10],
      ])
    })

    test('wait for a process that has them, although none has had them so far', async () => {
      const front = await start(['gone', 'a'], { handles: false })
      const v1 = await start(['a'])
      await accept(front.receiver, 3)
      await until(async () => v1.runs.length === 3)
      await hasLeft(v1.receiver)
      expect(v1.warnings()).toEqual([])
      const { events } = v1.receiver.inbox
      expect((await events?.list())?.events.map(({ owed }) => owed)).toEqual(Array(3).fill(['gone']))
      const back = await start(['gone'])
      await until(isEmpty(back.receiver))
      expect(back.runs).toHaveLength(3)
    })

    test('make a dead letter once keys expire, which a replay runs where they are back', async () => {
      const front = await start(['gone', 'a'], { handles: false })
      const v1 = await start(['a'], { ttlMs: 1_500 })
      await accept(front.receiver, 1)
      const { deadLetters } = front.receiver.inbox
      await until(async () => (await deadLetters.list()).length === 1)
      const [deadLetter] = await deadLetters.list()
      const message = expect.stringContaining('no process has this handler')
      expect(deadLetter).toMatchObject({ completed: ['a'], failures: [{ handler: 'gone', message }] })
      const back = await start(['gone'])
      expect(await deadLetters.replay(deadLetter?.key ?? '')).toBe(true)
      await until(isEmpty(front.receiver))
      expect([v1.runs.length, back.runs.length]).toEqual([1, 1])
    })

    test('are known to the other processes when the first event that owes them is accepted', async () => {
      const former = await start(['b'])
      await former.receiver.close()
      const v1 = await start(['a'])
      const v2 = await start(['a'])
      v2.add('b')
      await accept(v2.receiver, 50)
      await until(isEmpty(v1.receiver))
      expect(v2.runs.filter(({ handler }) => handler === 'b')).toHaveLength(50)
    })

    test('run once each, although those of another process have failed permanently and do not run again', async () => {
      const count = 50
      const failed: string[] = []
      const never = async (name: string) => {
        failed.push(name)
        throw new PermanentFailure('no')
      }
      const front = await start(['a', 'b'], { handles: false })
      await start(['a'], {}, never)
      const onlyB = await start(['b'])
      await accept(front.receiver, count)
      const { deadLetters } = front.receiver.inbox
      await until(isEmpty(front.receiver))
      expect([failed.length, onlyB.runs.length]).toEqual([count, count])
      const failures = [{ handler: 'a', message: 'PermanentFailure: no' }]
      const ends = (await deadLetters.list()).map((deadLetter) => [deadLetter.completed, deadLetter.failures])
      expect(ends).toEqual(Array(count).fill([['b'], failures]))
    })

    test('run after a replay, in any process that has them', async () => {
      let fails = true
      const front = await start(['a', 'b'], { handles: false })
      const onlyA = await start(['a'], {}, async () => {
        if (fails) throw new Error('not yet')
      })
      await accept(front.receiver, 1)
      const { inbox } = front.receiver
      await until(async () => (await inbox.stats()).deadLetters === 1)
      fails = false
      const onlyB = await start(['b'])
      const [deadLetter] = await inbox.deadLetters.list()
      expect(await inbox.deadLetters.replay(deadLetter?.key ?? '')).toBe(true)
      await until(isEmpty(front.receiver))
      expect([onlyA, onlyB].map(({ runs }) => runs.map(({ handler }) => handler))).toEqual([['a'], ['b']])
    })
  })
}
