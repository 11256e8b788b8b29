import type { Acknowledgement, Outcome } from './delivery.ts'
import type { MediaEvent } from './events/catalogue.ts'
import type { DeliveryReport, HandlingReport, Hooks } from './hooks.ts'
import { consoleLogger, type Logger } from './logger.ts'

type Level = keyof Logger

// What the sender or its network did is worth a line; what keeps deliveries from being taken wants attention.
const deliveryLevels: Partial<Record<Outcome, Level>> = {
  unauthorized: 'warn',
  malformed: 'warn',
  method_not_allowed: 'info',
  unsupported_media_type: 'info',
  too_large: 'warn',
  incomplete: 'info',
  overloaded: 'warn',
  closing: 'info',
  in_progress: 'info',
  unavailable: 'error',
  handler_failed: 'warn',
  body_consumed: 'error',
  internal: 'error',
}

const handlingLevels: Record<HandlingReport['outcome'], Level> = {
  handled: 'debug',
  retried: 'warn',
  stopped: 'warn',
  failed: 'error',
  'dead-lettered': 'error',
}

/** Tells hooks and logger what happened. Nothing that either throws gets out. */
export interface Reporter {
  delivery(acknowledgement: Acknowledgement, startedAt: number, event?: MediaEvent, error?: unknown): void
  handling(report: HandlingReport): void
  /** Calls a function of the user's that must not break anything. */
  guarded(what: string, call: () => void): void
}

export function createReporter(hooks: Hooks, logger: Logger): Reporter {
  // The console shows no debug lines, so that success costs nothing where nobody listens.
  const isHeard = (level: Level, hook: unknown) => hook !== undefined || level !== 'debug' || logger !== consoleLogger

  const guarded = (what: string, call: () => void): void => {
    try {
      call()
    } catch (error) {
      try {
        logger.error({ err: error }, `${what} threw`)
      } catch {
        // A logger that throws leaves nowhere to say so.
      }
    }
  }

  return {
    guarded,
    delivery(acknowledgement, startedAt, event, error) {
      const level = deliveryLevels[acknowledgement.outcome] ?? 'debug'
      if (!isHeard(level, hooks.delivery)) return
      const report = deliveryReport(acknowledgement, startedAt, event, error)
      guarded('the delivery hook', () => hooks.delivery?.(report))
      const { error: err, ...details } = report
      guarded('the logger', () => logger[level](err === undefined ? details : { ...details, err }, lineOf(report)))
    },
    handling(report) {
      const level = handlingLevels[report.outcome]
      if (!isHeard(level, hooks.handling)) return
      guarded('the handling hook', () => hooks.handling?.(report))
      const { error: err, ...details } = report
      guarded('the logger', () =>
        logger[level](err === undefined ? details : { ...details, err }, `event ${report.outcome}`),
      )
    },
  }
}

function deliveryReport(
  { outcome, status }: Acknowledgement,
  startedAt: number,
  event: MediaEvent | undefined,
  error: unknown,
): DeliveryReport {
  const report = { outcome, status, durationMs: performance.now() - startedAt }
  const named = event && { key: event.key, type: event.type, mediaId: event.mediaId }
  if (error === undefined) return { ...report, ...named }
  const { message, cause } = error as Error
  if (cause === undefined) return { ...report, ...named, reason: message }
  // A cause is either more words for the reason or what somebody threw.
  return typeof cause === 'string'
    ? { ...report, ...named, reason: cause }
    : { ...report, ...named, reason: message, error: cause }
}

const lineOf = ({ outcome, reason }: DeliveryReport): string =>
  reason === undefined ? `delivery ${outcome}` : `delivery refused: ${reason}`
