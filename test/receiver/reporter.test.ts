import { describe, expect, test } from 'vitest'
import type { HandlerRun } from '../../src/handlers/handler-run.ts'
import type { AttemptReport, Logger, RunReport } from '../../src/index.ts'
import { type LogLevel, logLevels, safeLogger } from '../../src/internal/logger.ts'
import { acknowledged, rejection } from '../../src/receiver/acknowledgement.ts'
import { Reporter } from '../../src/receiver/reporter.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { eventOf } from '../support/inbox.ts'
import { recordingLogger } from '../support/recording-logger.ts'
import { receiverWith } from './listening-receiver.ts'

/** Makes a logger that records the levels that it is asked about and the lines that it gets. */
function recording(lowest: LogLevel | 'silent') {
  const asked: string[] = []
  const lines: { level: LogLevel; details: object }[] = []
  const write = (level: LogLevel) => (details: object) => void lines.push({ level, details })
  const logger: Logger = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    isLevelEnabled(level) {
      asked.push(level)
      return lowest !== 'silent' && logLevels.indexOf(level as LogLevel) >= logLevels.indexOf(lowest)
    },
  }
  return { logger, asked, lines }
}

/** Accepts one event, whose handler fails once and then succeeds, and rejects another delivery. */
async function handleAndReject(logger: Logger, hooks = {}) {
  const receiver = receiverWith({ retry: { baseMs: 1 }, logger, hooks })
  receiver.onAny((_, { attempt }) => attempt > 1 || Promise.reject(new Error('no')))
  await (await deliver(receiver, samplePayload('encoding.finished'))).handled
  await deliver(receiver, 'no JSON')
  await receiver.close()
}

/** Makes an event and a run of a handler that record which of their fields are read. */
function watched() {
  const read: string[] = []
  const watch = <T extends object>(name: string, target: T): T =>
    new Proxy(target, {
      get(object, field) {
        read.push(`${name}.${String(field)}`)
        return Reflect.get(object, field)
      },
    })
  const event = watch('event', eventOf('one').event)
  const run = { event: eventOf('one').event, handler: 'h', startedAt: 0, context: { attempt: 1 } }
  return { event, run: watch('run', run) as unknown as HandlerRun, read }
}

describe('a level that is off', () => {
  test('gets no lines, and the others get theirs', async () => {
    const { logger, asked, lines } = recording('warn')
    await handleAndReject(logger)
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'warn'])
    expect(asked.toSorted()).toEqual(['debug', 'debug', 'warn', 'warn'])
  })

  test('reads no field of an event or a run', () => {
    const { logger } = recording('silent')
    const reporter = new Reporter({}, safeLogger(logger))
    const { event, run, read } = watched()
    reporter.delivery(acknowledged.accepted, 0, event)
    reporter.delivery(rejection('overloaded', 'full'), 0, event, new Error('full'))
    reporter.run('handled', run)
    reporter.run('retried', run, new Error('no'), 5)
    reporter.run('dead-lettered', run, new Error('no'))
    expect(read).toEqual([])
  })

  test('differs from a level that is on, which reads them', () => {
    const { logger, lines } = recording('debug')
    const reporter = new Reporter({}, safeLogger(logger))
    const { event, run, read } = watched()
    reporter.delivery(acknowledged.accepted, 0, event)
    reporter.run('handled', run)
    expect(lines).toHaveLength(2)
    expect(read.toSorted()).toEqual([
      'event.key',
      'event.mediaId',
      'event.type',
      'run.context',
      'run.event',
      'run.handler',
      'run.startedAt',
    ])
  })

  test('does not stop the reports to hooks', async () => {
    const { logger, lines } = recording('silent')
    const deliveries: string[] = []
    const handlings: string[] = []
    await handleAndReject(logger, {
      delivery: ({ outcome }: { outcome: string }) => void deliveries.push(outcome),
      handling: ({ outcome }: RunReport) => void handlings.push(outcome),
    })
    expect(lines).toEqual([])
    expect(deliveries).toEqual(['accepted', 'malformed'])
    expect(handlings).toEqual(['retried', 'handled'])
  })
})

describe('the line of a run', () => {
  const error = new Error('no')

  test.each<[RunReport['outcome'], Error | undefined, number | undefined, LogLevel, string]>([
    ['handled', undefined, undefined, 'debug', 'handled an event in attempt 1'],
    ['handled', error, undefined, 'error', 'failed after its transaction in attempt 1'],
    ['retried', error, 4.6, 'warn', 'failed in attempt 1 and will run again in 5 ms'],
    ['retried', undefined, 4.6, 'warn', 'failed in attempt 1 and will run again in 5 ms'],
    ['stopped', error, undefined, 'warn', 'failed in attempt 1'],
    ['failed', error, undefined, 'error', 'failed in attempt 1'],
    ['dead-lettered', error, undefined, 'error', 'failed in attempt 1, its last: the event becomes a dead letter'],
  ])('that is %s with %s', (outcome, error, retryInMs, level, text) => {
    const { logger, lines } = recordingLogger()
    const reports: RunReport[] = []
    const reporter = new Reporter({ handling: (report) => void reports.push(report) }, safeLogger(logger))
    const { event } = eventOf('one')
    const startedAt = performance.now()
    reporter.run(outcome, { event, handler: 'h', startedAt, context: { attempt: 1 } } as HandlerRun, error, retryInMs)
    const { key, type, mediaId } = event
    const named = { outcome, handler: 'h', key, type, mediaId, attempt: 1, durationMs: expect.any(Number) }
    const rest = retryInMs === undefined ? {} : { retryInMs }
    const hasFailed = outcome !== 'handled' || error !== undefined
    expect(reports).toStrictEqual([{ ...named, ...rest, ...(hasFailed && { error }) }])
    expect(reports[0]?.durationMs).toBeLessThan(1_000)
    const details = { ...named, ...rest, ...(error && { err: error }) }
    expect(lines).toStrictEqual([{ level, message: `handler h ${text}`, details }])
  })
})

describe('a logger whose isLevelEnabled throws', () => {
  test('gets every line, and changes nothing else', async () => {
    const { logger, lines } = recording('debug')
    const broken = {
      ...logger,
      isLevelEnabled() {
        throw new Error('broken')
      },
    }
    await handleAndReject(broken)
    expect(lines.map(({ level }) => level).toSorted()).toEqual(['debug', 'debug', 'warn', 'warn'])
  })
})

test('an attempt at an event from a machine whose clock is ahead took no negative time', () => {
  const times: number[] = []
  const attempt = ({ sinceReceivedMs }: AttemptReport) => void times.push(sinceReceivedMs)
  const reporter = new Reporter({ attempt }, safeLogger(recording('silent').logger))
  const accepted = { ...eventOf('one'), receivedAt: new Date(Date.now() + 60_000) }
  reporter.attempt('handled', accepted, 1)
  expect(times).toEqual([0])
})
