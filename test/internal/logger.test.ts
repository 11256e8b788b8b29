import { format } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { consoleLogger, type Logger, logLevels, safeLogger, throttled } from '../../src/internal/logger.ts'

const nothing = () => {}
const methods = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** Lists the levels that a logger has on. */
const levelsOf = (logger: Partial<Logger>) => {
  const safe = safeLogger({ ...methods, ...logger })
  return logLevels.filter((level) => safe.isLevelEnabled(level))
}

describe('the levels of a logger', () => {
  test('are those that its isLevelEnabled names', () => {
    expect(levelsOf({ isLevelEnabled: (level) => level === 'info' || level === 'error' })).toEqual(['info', 'error'])
  })

  test('come from isLevelEnabled rather than from its level', () => {
    expect(levelsOf({ level: 'silent', isLevelEnabled: () => true })).toEqual(logLevels)
    expect(levelsOf({ level: 'debug', isLevelEnabled: () => false })).toEqual([])
  })

  test('come from isLevelEnabled, called as a method, since pino reads `this`', () => {
    class Pino {
      debug = nothing
      info = nothing
      warn = nothing
      error = nothing
      readonly #lowest = 'error'
      isLevelEnabled(level: string) {
        return level === this.#lowest
      }
    }
    const safe = safeLogger(new Pino())
    expect(logLevels.filter((level) => safe.isLevelEnabled(level))).toEqual(['error'])
  })

  test.each([
    ['trace', ['debug', 'info', 'warn', 'error']],
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
    ['fatal', []],
    ['silent', []],
  ])('follow from the level %s of pino', (level, expected) => {
    expect(levelsOf({ level })).toEqual(expected)
  })

  test.each([
    ['silly', ['debug', 'info', 'warn', 'error']],
    ['verbose', ['debug', 'info', 'warn', 'error']],
    ['http', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
  ])('leave out no line of the level %s of winston', (level, expected) => {
    expect(levelsOf({ level })).toEqual(expected)
  })

  test.each([undefined, null, 30, 'custom', {}, '__proto__'])('are all on if the level is %o', (level) => {
    expect(levelsOf({ level })).toEqual(logLevels)
  })

  test('are all on if isLevelEnabled or level throws', () => {
    const broken = () => {
      throw new Error('broken')
    }
    expect(levelsOf({ isLevelEnabled: broken })).toEqual(logLevels)
    const logger = Object.defineProperty({ ...methods }, 'level', { get: broken })
    expect(logLevels.every((level) => safeLogger(logger).isLevelEnabled(level))).toBe(true)
  })

  test('can change while the receiver runs', () => {
    const logger = { ...methods, level: 'info' }
    const safe = safeLogger(logger)
    expect(safe.isLevelEnabled('debug')).toBe(false)
    logger.level = 'debug'
    expect(safe.isLevelEnabled('debug')).toBe(true)
  })
})

test('the default logger writes one line, whatever a text of the sender holds', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  consoleLogger.warn({ type: 'a\u009bb\u202ec' }, 'no handler for x\nmedia-webhooks: forged \u001b[2J')
  expect(warn.mock.calls).toEqual([
    ['media-webhooks: no handler for x%0Amedia-webhooks: forged %1B[2J {"type":"a%C2%9Bb%E2%80%AEc"}'],
  ])
  warn.mockRestore()
})

test('the default logger writes no line of an error, its causes or its properties as it came', () => {
  const printed: string[] = []
  const error = vi.spyOn(console, 'error').mockImplementation((...line) => void printed.push(format(...line)))
  const forged = 'x\nmedia-webhooks: forged \u001b[2J\u2028%s'
  const cause = new AggregateError([new Error(forged), forged], forged, { cause: forged })
  const err = Object.assign(new TypeError(forged, { cause }), { code: forged })
  const many = Array.from({ length: 20 }).reduce<Error>((cause) => new Error(forged, { cause }), err)
  const circular = new Error(forged)
  circular.cause = circular
  const stackless = new Error(forged)
  stackless.stack = undefined
  for (const each of [err, many, circular, stackless, forged, undefined]) consoleLogger.error({ err: each }, forged)
  error.mockRestore()
  expect(
    printed
      .join('\n')
      .split('\n')
      .filter((line) => line.startsWith('media-webhooks')),
  ).toHaveLength(6)
  for (const line of printed) for (const control of ['\u001b', '\u2028']) expect(line).not.toContain(control)
  expect(printed[0]).toContain('forged %1B[2J%E2%80%A8%s {}')
})

describe('throttled lines', () => {
  const lines: [number, object, string][] = []
  const logger = {
    ...methods,
    warn: (details: object, message: string) => void lines.push([Date.now(), details, message]),
  }
  beforeEach(() => {
    lines.length = 0
    vi.useFakeTimers({ now: 0 })
  })
  afterEach(() => void vi.useRealTimers())

  test('are the first of a message, and then one a second, the newest of the others, with their count', () => {
    for (const key of ['a', 'b', 'c']) throttled(logger).warn({ key }, 'it failed')
    throttled(logger).warn({}, 'another')
    vi.advanceTimersByTime(1_000)
    expect(lines).toEqual([
      [0, { key: 'a' }, 'it failed'],
      [0, {}, 'another'],
      [1_000, { key: 'c', count: 2 }, 'it failed'],
    ])
  })
})
