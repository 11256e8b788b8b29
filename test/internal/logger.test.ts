import { describe, expect, test, vi } from 'vitest'
import { consoleLogger, type Logger, logLevels, safeLogger } from '../../src/internal/logger.ts'

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
