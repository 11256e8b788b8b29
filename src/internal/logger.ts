import { guarded } from './guarded.ts'
import { withoutOwnFrames } from './stack.ts'

/** Log levels, least urgent first. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const

export type LogLevel = (typeof logLevels)[number]

type LogMethod = (details: object, message: string) => void

/** The part of pino's interface that is used: details, then the message. No line is built for a level that is off. */
export interface Logger {
  debug: LogMethod
  info: LogMethod
  warn: LogMethod
  error: LogMethod
  /** True if a level is written, as in pino and winston. Without it `level` decides. */
  isLevelEnabled?(level: string): boolean
  /** The lowest level written, such as `info` or `silent`. Unknown names mean every level. */
  readonly level?: unknown
}

/** A logger that never throws and always knows its levels. */
export interface SafeLogger extends Logger {
  isLevelEnabled(level: LogLevel): boolean
}

/** The default logger: warnings and errors on the console, one line each, then the stack of `err`. */
export const consoleLogger: Logger = {
  level: 'warn',
  debug() {},
  info() {},
  warn: (details, message) => console.warn(...consoleLine(details, message)),
  error: (details, message) => console.error(...consoleLine(details, message)),
}

function consoleLine({ err, ...details }: { readonly err?: unknown }, message: string): unknown[] {
  // Text from the sender must not forge lines or control the terminal.
  const line = `media-webhooks: ${message} ${JSON.stringify(details)}`.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    encodeURI,
  )
  return err === undefined ? [line] : [line, shortened(err)]
}

/** Copies an error without our own stack frames, which are the same for every failed handler. */
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

/** A child logger that adds `bound` to every line. */
export const withDetails = (logger: Logger, bound: object): Logger =>
  eachLevel((level) => (details, message) => logger[level]({ ...bound, ...details }, message))

/** Wraps a user's logger so it never throws. A line it throws or rejects for is lost. */
export function safeLogger(logger: Logger): SafeLogger {
  const lines = eachLevel((level) => (details, message) => {
    // A logger's own failure can't be logged.
    guarded(
      () => logger[level](details, message),
      () => {},
    )
  })
  // Checked for every line, because the level can change at run time.
  return { ...lines, isLevelEnabled: (level) => isEnabled(logger, level) }
}

// Level names of pino and winston. Any other name lets all levels through.
const levelNames: readonly unknown[] = [...logLevels, 'fatal', 'silent']

function isEnabled(logger: Logger, level: LogLevel): boolean {
  try {
    if (typeof logger.isLevelEnabled === 'function') return logger.isLevelEnabled(level)
    return levelNames.indexOf(level) >= levelNames.indexOf(logger.level)
  } catch {
    return true
  }
}
