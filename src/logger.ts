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
