import type { Acknowledgement, Outcome } from '../delivery.ts'
import type { MediaEvent } from '../events/catalogue.ts'
import type { HandlerRun } from '../handlers/handler-run.ts'
import { consoleLogger, type Logger, unfailing } from '../internal/logger.ts'
import { isPromise } from '../internal/maybe-promise.ts'
import type { DeliveryReport, HandlingReport, Hooks } from './hooks.ts'

type Level = keyof Logger
type Failure = Exclude<HandlingReport['outcome'], 'handled'>

// What the sender or its network did is worth a line; what keeps deliveries from being taken wants attention.
const deliveryLevels: Partial<Record<Outcome, Level>> = {
  unauthorized: 'warn',
  malformed: 'warn',
  method_not_allowed: 'info',
  unsupported_media_type: 'warn',
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

/** Tells hooks and logger what happened. Nothing that either throws, or rejects with, gets out. */
export interface Reporter {
  delivery(acknowledgement: Acknowledgement, startedAt: number, event?: MediaEvent, error?: unknown): void
  handled(run: HandlerRun): void
  notHandled(outcome: Failure, run: HandlerRun, error: unknown, retryInMs?: number): void
  /** Calls a function of the user's that must not break anything. */
  guarded(what: string, call: () => unknown): void
}

export function createReporter(hooks: Hooks, logger: Logger): Reporter {
  // The console shows no debug lines, so that success costs nothing where nobody listens.
  const isHeard = (level: Level, hook: unknown) => hook !== undefined || level !== 'debug' || logger !== consoleLogger

  const safeLogger = unfailing(logger)
  const threw = (what: string, error: unknown): void => safeLogger.error({ err: error }, `${what} threw`)

  const guarded = (what: string, call: () => unknown): void => {
    try {
      const result = call()
      // An async function is given where a plain one is expected; its rejection would end the process.
      if (isPromise(result)) result.then(undefined, (error) => threw(what, error))
    } catch (error) {
      threw(what, error)
    }
  }

  const log = (level: Level, message: string, { error: err, ...details }: { readonly error?: unknown }): void =>
    safeLogger[level](err === undefined ? details : { ...details, err }, message)

  const tellOfHandling = (report: HandlingReport): void => {
    guarded('the handling hook', () => hooks.handling?.(report))
    log(handlingLevels[report.outcome], handlingLine(report), report)
  }

  return {
    guarded,
    delivery(acknowledgement, startedAt, event, error) {
      const level = deliveryLevels[acknowledgement.outcome] ?? 'debug'
      if (!isHeard(level, hooks.delivery)) return
      const report = deliveryReport(acknowledgement, startedAt, event, error)
      guarded('the delivery hook', () => hooks.delivery?.(report))
      log(level, lineOf(report), report)
    },
    handled(run) {
      if (isHeard('debug', hooks.handling)) tellOfHandling(handlingReport('handled', run))
    },
    notHandled(outcome, run, error, retryInMs) {
      const report = handlingReport(outcome, run)
      tellOfHandling(retryInMs === undefined ? { ...report, error } : { ...report, retryInMs, error })
    },
  }
}

function handlingLine({ outcome, handler, attempt, retryInMs = 0 }: HandlingReport): string {
  const what = `handler ${handler} ${outcome === 'handled' ? 'handled an event' : 'failed'} in attempt ${attempt}`
  if (outcome === 'retried') return `${what} and will run again in ${Math.round(retryInMs)} ms`
  return outcome === 'dead-lettered' ? `${what}, the last: the event is a dead letter` : what
}

function handlingReport(outcome: HandlingReport['outcome'], run: HandlerRun): HandlingReport {
  const { key, type, mediaId } = run.event
  const durationMs = performance.now() - run.startedAt
  return { outcome, handler: run.handler, key, type, mediaId, attempt: run.context.attempt, durationMs }
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
