import { isPromise } from './maybe-promise.ts'

type LogMethod = (details: object, message: string) => void

/** The part of pino's interface that is used: an object of details first, then the message. */
export interface Logger {
  debug: LogMethod
  info: LogMethod
  warn: LogMethod
  error: LogMethod
}

/** What is logged where the user gives no logger: only what calls for attention, on the console. */
export const consoleLogger: Logger = {
  debug() {},
  info() {},
  warn: (details, message) => console.warn(`media-webhooks: ${message}`, details),
  error: (details, message) => console.error(`media-webhooks: ${message}`, details),
}

/** A logger that adds the same details to every line. */
export function withDetails(logger: Logger, bound: object): Logger {
  const bind =
    (level: keyof Logger): LogMethod =>
    (details, message) =>
      logger[level]({ ...bound, ...details }, message)
  return { debug: bind('debug'), info: bind('info'), warn: bind('warn'), error: bind('error') }
}

/** A logger whose lines are lost where the given one throws or rejects: nothing else must be. */
export function unfailing(logger: Logger): Logger {
  const guard =
    (level: keyof Logger): LogMethod =>
    (details, message) => {
      try {
        const written: unknown = logger[level](details, message)
        if (isPromise(written)) written.then(undefined, () => {})
      } catch {
        // A logger that throws leaves nowhere to say so.
      }
    }
  return { debug: guard('debug'), info: guard('info'), warn: guard('warn'), error: guard('error') }
}
