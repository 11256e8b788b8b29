import { type Logger, type LogLevel, logLevels } from '../../src/internal/logger.ts'

interface Line {
  readonly level: LogLevel
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** Makes a logger that records its lines, from the lowest level on. */
export function recordingLogger(lowest: LogLevel = 'debug') {
  const lines: Line[] = []
  const log = (level: LogLevel) => (details: object, message: string) => {
    if (logLevels.indexOf(level) >= logLevels.indexOf(lowest)) lines.push({ level, message, details: { ...details } })
  }
  const logger: Logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  return { logger, lines }
}
