import { guarded } from './guarded.ts'
import { withoutOwnFrames } from './stack.ts'

/** The levels of log lines, from the least to the most urgent. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const

/** One of {@link logLevels}. */
export type LogLevel = (typeof logLevels)[number]

type LogMethod = (details: object, message: string) => void

/**
 * The part of pino's interface that is used: an object of details first, then the message. A level that is off costs
 * nothing: no line is built for it.
 */
export interface Logger {
  debug: LogMethod
  info: LogMethod
  warn: LogMethod
  error: LogMethod
  /** Returns true if lines of a level are written, as in pino and winston. Without it `level` is read. */
  isLevelEnabled?(level: string): boolean
  /** The name of the lowest level that is written, such as `info` or `silent`. Any other value means every level. */
  readonly level?: unknown
}

/** A logger that never throws, and that can always be asked which levels are on. */
export interface SafeLogger extends Logger {
  isLevelEnabled(level: LogLevel): boolean
}

/** The default logger: warnings and errors on the console, a line each. An error comes with its stack, on further lines. */
export const consoleLogger: Logger = {
  level: 'warn',
  debug() {},
  info() {},
  warn: (details, message) => console.warn(...consoleLine(details, message)),
  error: (details, message) => console.error(...consoleLine(details, message)),
}

function consoleLine({ err, ...details }: { readonly err?: unknown }, message: string): unknown[] {
  // A text of the sender must not forge lines, or control the terminal.
  const line = `media-webhooks: ${message} ${JSON.stringify(details)}`.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    encodeURI,
  )
  return err === undefined ? [line] : [line, shortened(err)]
}

/** Copies an error with a shorter stack: of each failure of a handler, most lines are the same calls of this package. */
function shortened(err: unknown): unknown {
  if (!(err instanceof Error) || typeof err.stack !== 'string') return err
  const copy = new Error(err.message)
  const stack = { value: withoutOwnFrames(err.stack), configurable: true, writable: true }
  Object.defineProperties(copy, { ...Object.getOwnPropertyDescriptors(err), stack })
  return Object.setPrototypeOf(copy, Object.getPrototypeOf(err))
}

const eachLevel = (write: (level: LogLevel) => LogMethod) => ({
  debug: write('debug'),
  info: write('info'),
  warn: write('warn'),
  error: write('error'),
})

/** Makes a logger that adds the same details to every line. */
export const withDetails = (logger: Logger, bound: object): Logger =>
  eachLevel((level) => (details, message) => logger[level]({ ...bound, ...details }, message))

/** Makes a logger that never throws: a line for which the given logger throws or rejects is lost. */
export function safeLogger(logger: Logger): SafeLogger {
  const lines = eachLevel((level) => (details, message) => {
    // The failure of the logger cannot be logged.
    guarded(
      () => logger[level](details, message),
      () => {},
    )
  })
  // It is checked for every line: the level of a running logger can change.
  return { ...lines, isLevelEnabled: (level) => isEnabled(logger, level) }
}

// The names that a logger's level can have, in pino and winston. Any other name lets all levels through.
const levelNames: readonly unknown[] = [...logLevels, 'fatal', 'silent']

function isEnabled(logger: Logger, level: LogLevel): boolean {
  try {
    if (typeof logger.isLevelEnabled === 'function') return logger.isLevelEnabled(level)
    return levelNames.indexOf(level) >= levelNames.indexOf(logger.level)
  } catch {
    return true
  }
}
