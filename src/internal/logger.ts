import { guarded } from './guarded.ts'
import { LogThrottle } from './log-throttle.ts'
import { isFrame, withoutOwnFrames } from './stack.ts'

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

/** The arguments for the console. */
export function consoleLine({ err, ...details }: { readonly err?: unknown }, message: string): unknown[] {
  const line = escaped(`media-webhooks: ${message} ${JSON.stringify(details)}`)
  // Before other arguments, the console would replace `%s`.
  return err === undefined ? [line] : [line.replace(/%(?=[%cdfijoOs])/g, '%%'), printable(err)]
}

/** Text from the sender must not forge lines or control the terminal. */
const escaped = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, encodeURI)

/** Longest chain of causes printed. */
const maxCauses = 5

/** Copies an error, with its causes: escaped, and without our own stack frames, which are the same for every handler. */
export function printable(err: unknown, depth = 0): unknown {
  if (typeof err === 'string') return escaped(err)
  if (Array.isArray(err)) return err.map((each) => printable(each, depth))
  if (!(err instanceof Error)) return err
  if (depth === maxCauses) return '…'
  const copy = new Error(escaped(err.message))
  const properties = Object.getOwnPropertyDescriptors<Record<string, unknown>>(err as never)
  for (const property of Object.values(properties)) {
    if ('value' in property) property.value = printable(property.value, depth + 1)
  }
  const stack = { value: escapedStack(`${err.stack}`), configurable: true, writable: true }
  Object.defineProperties(copy, { ...properties, stack })
  return Object.setPrototypeOf(copy, Object.getPrototypeOf(err))
}

/** The message comes first, and can look like frames. */
function escapedStack(stack: string): string {
  const lines = withoutOwnFrames(stack).split('\n')
  const frames = lines.slice(lines.findLastIndex((line) => !isFrame(line)) + 1)
  const message = lines.slice(0, lines.length - frames.length).join('\n')
  return [message, ...frames].map(escaped).join('\n')
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

const throttledLoggers = new WeakMap<Logger, Logger>()

/** After a line, others with its message share one per second: the newest, with their `count`. */
export function throttled(logger: Logger): Logger {
  const known = throttledLoggers.get(logger)
  if (known !== undefined) return known
  const throttle = new LogThrottle()
  const made = eachLevel((level) => (details, message) => {
    const logRest = (count: number) => logger[level]({ ...details, count }, message)
    if (throttle.isFirst(message, logRest)) logger[level](details, message)
  })
  throttledLoggers.set(logger, made)
  return made
}

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

/** The logger of a receiver whose user gave none. */
export const defaultLogger: SafeLogger = /* @__PURE__ */ safeLogger(consoleLogger)

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
