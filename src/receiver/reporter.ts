import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import { type AttemptReport, type EndedRun, hasFailed, type RunReport, type RunReporter } from '../handlers/reports.ts'
import type { AcceptedEvent, ActivityObserver } from '../inbox/inbox.ts'
import { captureContext } from '../internal/async-context.ts'
import { aFunction, checkOptions, hasOptions, isPlainObject } from '../internal/check-options.ts'
import { durationText } from '../internal/duration.ts'
import { calledWithin, guarded } from '../internal/guarded.ts'
import { LogThrottle } from '../internal/log-throttle.ts'
import { type LogLevel, type SafeLogger, throttled } from '../internal/logger.ts'
import { msSince } from '../internal/timers.ts'
import type { Acknowledgement, DeliveryOutcome } from './acknowledgement.ts'
import type { ConflictReport, DeliveryReport, Hooks } from './hooks.ts'
import type { DeliverySpan, Telemetry } from './telemetry.ts'

// `warn` by default. `info` for what browsers, flaky networks, deployments and slow handlers cause; `error` when the
// receiver can't accept any delivery.
const rejectionLevels: Partial<Record<DeliveryOutcome, LogLevel>> = {
  method_not_allowed: 'info',
  incomplete: 'info',
  closing: 'info',
  in_progress: 'info',
  unavailable: 'error',
  body_consumed: 'error',
  internal: 'error',
}

const runLevels: Record<RunReport['outcome'], LogLevel> = {
  handled: 'debug',
  retried: 'warn',
  stopped: 'warn',
  failed: 'error',
  'dead-lettered': 'error',
}

/** A user's hooks or an inbox's observer, which also gets `failed`. */
type Observer = Hooks & Pick<ActivityObserver, 'failed'>

const hookNames = ['delivery', 'handling', 'attempt', 'conflict'] as const satisfies (keyof Hooks)[]
const observerNames = [...hookNames, 'failed'] as const satisfies (keyof Observer)[]

/** Reports to the hooks and the logger. Never throws. */
export interface Reporter extends RunReporter {
  delivery(
    acknowledgement: Acknowledgement,
    startedAt: number,
    event: MediaEvent | undefined,
    error?: Error,
    span?: DeliverySpan,
  ): void
  conflict(report: ConflictReport): void
  /** Adds a user's hooks. Returns a function that removes them. */
  observe(hooks: Hooks): () => void
  observeForInbox(observer: ActivityObserver): void
}

/** Reports are built only if a hook, telemetry or the log level asks for them. */
export function createReporter(hooks: Hooks = {}, logger: SafeLogger, telemetry?: Telemetry): Reporter {
  /** An entry per registration: an object can be added twice, and each is removed once. */
  const listening: Record<keyof Observer, { readonly observer: Observer }[]> = {
    delivery: [],
    handling: [],
    attempt: [],
    conflict: [],
    failed: [],
  }

  const threw = (what: string, error: unknown): void => throttled(logger).error({ err: error }, `${what} threw`)

  const guardedCall = <Result>(what: string, call: () => Result): Result | undefined =>
    guarded(call, (error) => threw(what, error))

  const inContext = captureContext()
  const rejections = new LogThrottle()

  const log = (level: LogLevel, message: string, { error: err, ...details }: { readonly error?: unknown }): void =>
    logger[level](err === undefined ? details : { ...details, err }, message)

  const logRest = (level: LogLevel, outcome: DeliveryOutcome, count: number, newest: Error): void => {
    const more = count === 1 ? '1 more delivery was' : `${count} more deliveries were`
    logger[level]({ outcome, count }, `${more} rejected within 1 s as ${outcome}; the newest: ${reasonOf(newest)}`)
  }

  const callHooks = (kind: keyof Hooks, report: DeliveryReport | RunReport | AttemptReport | ConflictReport): void => {
    for (const { observer } of listening[kind])
      guardedCall(`the ${kind} hook`, () => inContext(() => observer[kind]?.(report as never)))
  }

  const add = (observer: Observer, names: readonly (keyof Observer)[]): (() => void) => {
    const entry = { observer }
    for (const name of names) if (observer[name] !== undefined) listening[name].push(entry)
    return () => {
      for (const name of names) listening[name] = listening[name].filter((other) => other !== entry)
    }
  }

  const addChecked = (each: Observer, names: readonly (keyof Observer)[]): (() => void) => {
    const rules = Object.fromEntries(names.map((name) => [name, aFunction]))
    // `hooks` may be an instance with state: ignore fields that are neither hooks nor functions.
    const isHook = ([name, value]: [string, unknown]) => typeof value === 'function' || Object.hasOwn(rules, name)
    checkOptions(
      'hooks',
      hasOptions(each) ? Object.fromEntries(Object.entries(each).filter(isHook)) : (each ?? null),
      rules,
    )
    if (!isPlainObject(each) && names.every((name) => each[name] === undefined))
      throw new WebhookError('invalid_option', `hooks: the object has no hook; there are ${names.join(', ')}`)
    return add(each, names)
  }

  const reporter: Reporter = {
    guarded: guardedCall,
    inContext,
    within: (span, call) => calledWithin(span, call, (error) => threw('telemetry', error)),
    startRun: telemetry && ((run) => guardedCall('telemetry', () => telemetry.startRun(run))),
    observe: (each) => addChecked(each, hookNames),
    observeForInbox: (each) => addChecked(each, observerNames),
    delivery(acknowledgement, startedAt, event, error, span) {
      const level = error === undefined ? 'debug' : (rejectionLevels[acknowledgement.outcome] ?? 'warn')
      const isLogged =
        logger.isLevelEnabled(level) &&
        (error === undefined ||
          rejections.isFirst(acknowledgement.outcome, (count) => logRest(level, acknowledgement.outcome, count, error)))
      if (!isLogged && listening.delivery.length === 0 && span === undefined) return
      const report = deliveryReport(acknowledgement, startedAt, event, error)
      callHooks('delivery', report)
      if (span !== undefined) guardedCall('telemetry', () => span.end(report, event))
      if (isLogged) log(level, deliveryLine(report), report)
    },
    run(outcome, run, error, retryInMs) {
      if (hasFailed(outcome))
        for (const { observer } of listening.failed)
          guardedCall('the failed hook', () => observer.failed?.(run.handler))
      const level = outcome === 'handled' && error !== undefined ? 'error' : runLevels[outcome]
      const isLogged = logger.isLevelEnabled(level)
      if (!isLogged && listening.handling.length === 0 && telemetry === undefined) return
      const report = runReport(outcome, run, error, retryInMs)
      callHooks('handling', report)
      if (telemetry !== undefined) guardedCall('telemetry', () => run.span?.end(report))
      if (isLogged) log(level, runLine(report), report)
    },
    attempt(outcome, accepted, attempt) {
      if (listening.attempt.length > 0) callHooks('attempt', attemptReport(outcome, accepted, attempt))
    },
    conflict(report) {
      callHooks('conflict', report)
      throttled(logger).warn(
        { ...report },
        'a duplicate has a different payload than the accepted delivery with the same key',
      )
    },
  }
  reporter.observe(hooks)
  if (telemetry !== undefined) add(telemetry, hookNames)
  return reporter
}

function attemptReport(
  outcome: AttemptReport['outcome'],
  { event: { key, type, mediaId }, receivedAt }: AcceptedEvent,
  attempt: number,
): AttemptReport {
  return { outcome, key, type, mediaId, attempt, sinceReceivedMs: Math.max(0, Date.now() - receivedAt.getTime()) }
}

function runReport(
  outcome: RunReport['outcome'],
  { event, handler, startedAt, context }: EndedRun,
  error: unknown,
  retryInMs: number | undefined,
): RunReport {
  const { key, type, mediaId } = event
  const durationMs = msSince(startedAt)
  const report = { outcome, handler, key, type, mediaId, attempt: context.attempt, durationMs }
  if (outcome === 'handled' && error === undefined) return report
  return retryInMs === undefined ? { ...report, error } : { ...report, retryInMs, error }
}

function runLine({ outcome, handler, attempt, retryInMs = 0, error }: RunReport): string {
  const result =
    outcome !== 'handled' ? 'failed' : error === undefined ? 'handled an event' : 'failed after its transaction'
  const summary = `handler ${handler} ${result} in attempt ${attempt}`
  if (outcome === 'retried') return `${summary} and will run again in ${durationText(Math.round(retryInMs))}`
  return outcome === 'dead-lettered' ? `${summary}, its last: the event becomes a dead letter` : summary
}

function deliveryReport(
  { outcome, status }: Acknowledgement,
  startedAt: number,
  event: MediaEvent | undefined,
  error: Error | undefined,
): DeliveryReport {
  const identity = event && { key: event.key, type: event.type, mediaId: event.mediaId }
  const report = { outcome, status, durationMs: msSince(startedAt), ...identity }
  if (error === undefined) return report
  const { cause } = error
  const reason = reasonOf(error)
  // A string is our own, more detailed reason. User code or a driver threw anything else.
  return cause === undefined || typeof cause === 'string' ? { ...report, reason } : { ...report, reason, error: cause }
}

/** A string `cause` is a more detailed reason, for logs and hooks only. */
const reasonOf = ({ message, cause }: Error): string => (typeof cause === 'string' ? cause : message)

const deliveryLine = ({ outcome, reason }: DeliveryReport): string =>
  reason === undefined ? `delivery ${outcome}` : `delivery rejected: ${reason}`
