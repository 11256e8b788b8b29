import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import {
  type AttemptReport,
  attemptReport,
  type EndedRun,
  type RunReport,
  type RunReporter,
  runReport,
} from '../handlers/reports.ts'
import type { AcceptedEvent, InboxHost } from '../inbox/inbox.ts'
import type { TraceCarrier } from '../inbox/reading.ts'
import { captureContext } from '../internal/async-context.ts'
import { aFunction, checkOptions, hasOptions, isPlainObject } from '../internal/check-options.ts'
import { durationText } from '../internal/duration.ts'
import { calledWithin, guarded } from '../internal/guarded.ts'
import { LogThrottle } from '../internal/log-throttle.ts'
import { type LogLevel, type SafeLogger, throttled } from '../internal/logger.ts'
import type { Acknowledgement, Delivery, DeliveryOutcome } from './delivery.ts'
import {
  type ConflictReport,
  type DeliveryReport,
  deliveryReport,
  type Hooks,
  type Listener,
  type Reports,
  reasonOf,
} from './hooks.ts'
import type { DeliverySpan, Telemetry } from './telemetry.ts'

const kinds = ['delivery', 'handling', 'attempt', 'conflict'] as const satisfies (keyof Hooks)[]

/** Reports what a receiver does to all who listen. A report is built when the first of them wants it. Never throws. */
export class Reporter implements RunReporter {
  readonly inContext = captureContext()
  readonly startRun: RunReporter['startRun']
  /** Tells telemetry how long a storage step took. Absent without telemetry. */
  readonly measured: InboxHost['measured']
  readonly #logger: SafeLogger
  readonly #telemetry: Telemetry | undefined
  readonly #listeners: { [Kind in keyof Reports]: Listener<Reports[Kind]>[] }

  /** @throws WebhookError `invalid_option` */
  constructor(hooks: Hooks = {}, logger: SafeLogger, telemetry?: Telemetry) {
    this.#logger = logger
    this.#telemetry = telemetry
    this.#listeners = { delivery: [], handling: [], attempt: [], conflict: [] }
    this.startRun = telemetry && ((run) => this.guarded('telemetry', () => telemetry.startRun(run)))
    this.measured =
      telemetry &&
      ((step, durationMs, error) => this.guarded('telemetry', () => telemetry.measured(step, durationMs, error)))
    this.observe(hooks)
    if (telemetry !== undefined) this.#add(telemetry)
    this.#listeners.delivery.push(deliveryLog(logger))
    this.#listeners.handling.push(runLog(logger))
    this.#listeners.conflict.push(conflictLog(logger))
  }

  /**
   * Adds hooks. Returns a function that removes them.
   * @throws WebhookError `invalid_option`
   */
  observe(hooks: Hooks): () => void {
    const rules = Object.fromEntries(kinds.map((kind) => [kind, aFunction]))
    // `hooks` may be an instance with state: ignore fields that are neither hooks nor functions.
    const isHook = ([name, value]: [string, unknown]) => typeof value === 'function' || Object.hasOwn(rules, name)
    const options = hasOptions(hooks) ? Object.fromEntries(Object.entries(hooks).filter(isHook)) : (hooks ?? null)
    checkOptions('hooks', options, rules)
    if (!isPlainObject(hooks) && kinds.every((kind) => hooks[kind] === undefined))
      throw new WebhookError('invalid_option', `hooks: the object has no hook; there are ${kinds.join(', ')}`)
    return this.#add(hooks)
  }

  /** An object can be added twice, and each is removed once. */
  #add(hooks: Hooks): () => void {
    const removals = kinds.filter((kind) => hooks[kind] !== undefined).map((kind) => this.#listen(kind, hooks))
    return () => {
      for (const remove of removals) remove()
    }
  }

  #listen<Kind extends keyof Reports>(kind: Kind, hooks: Hooks): () => void {
    const listener: Listener<Reports[Kind]> = {
      hear: (report) =>
        void this.guarded(`the ${kind} hook`, () => this.inContext(() => hooks[kind]?.(report as never))),
    }
    const listeners: Record<Kind, Listener<Reports[Kind]>[]> = this.#listeners
    listeners[kind].push(listener)
    return () => {
      listeners[kind] = listeners[kind].filter((other) => other !== listener)
    }
  }

  /** Starts the span of a delivery; `undefined` without telemetry. */
  startDelivery(delivery: Delivery): DeliverySpan | undefined {
    const telemetry = this.#telemetry
    return telemetry && this.guarded('telemetry', () => telemetry.startDelivery(delivery))
  }

  readTrace(span: DeliverySpan | undefined): TraceCarrier | undefined {
    return span && this.guarded('telemetry', () => span.trace)
  }

  within<Result>(span: { within(call: () => unknown): unknown }, call: () => Result): Result {
    return calledWithin(span, call, (error) => this.#threw('telemetry', error))
  }

  delivery(
    acknowledgement: Acknowledgement,
    startedAt: number,
    event: MediaEvent | undefined,
    error?: Error,
    span?: DeliverySpan,
  ): void {
    let report: DeliveryReport | undefined
    for (const listener of this.#listeners.delivery) {
      if (listener.wants?.(acknowledgement.outcome, error) === false) continue
      report ??= deliveryReport(acknowledgement, startedAt, event, error)
      listener.hear(report)
    }
    if (span === undefined) return
    const last = report ?? deliveryReport(acknowledgement, startedAt, event, error)
    this.guarded('telemetry', () => span.end(last, event))
  }

  run(outcome: RunReport['outcome'], run: EndedRun, error?: unknown, retryInMs?: number): void {
    let report: RunReport | undefined
    for (const listener of this.#listeners.handling) {
      if (listener.wants?.(outcome, error) === false) continue
      report ??= runReport(outcome, run, error, retryInMs)
      listener.hear(report)
    }
    if (this.#telemetry === undefined) return
    const last = report ?? runReport(outcome, run, error, retryInMs)
    this.guarded('telemetry', () => run.span?.end(last))
  }

  attempt(outcome: AttemptReport['outcome'], accepted: AcceptedEvent, attempt: number): void {
    if (this.#listeners.attempt.length === 0) return
    const report = attemptReport(outcome, accepted, attempt)
    for (const listener of this.#listeners.attempt) listener.hear(report)
  }

  conflict(report: ConflictReport): void {
    for (const listener of this.#listeners.conflict) listener.hear(report)
  }

  /** Tells telemetry that the receiver closes. */
  closing(): void {
    this.guarded('telemetry', () => this.#telemetry?.closing())
  }

  guarded<Result>(what: string, call: () => Result): Result | undefined {
    return guarded(call, (error) => this.#threw(what, error))
  }

  #threw(what: string, error: unknown): void {
    throttled(this.#logger).error({ err: error }, `${what} threw`)
  }
}

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

/** Logs each delivery. Of many rejections with the same outcome, one line per second, with their count. */
function deliveryLog(logger: SafeLogger): Listener<DeliveryReport> {
  const rejections = new LogThrottle()
  const levelOf = (outcome: DeliveryOutcome, error: unknown): LogLevel =>
    error === undefined ? 'debug' : (rejectionLevels[outcome] ?? 'warn')
  const logRest = (outcome: DeliveryOutcome, count: number, newest: Error): void => {
    const more = count === 1 ? '1 more delivery was' : `${count} more deliveries were`
    const message = `${more} rejected within 1 s as ${outcome}; the newest: ${reasonOf(newest)}`
    logger[levelOf(outcome, newest)]({ outcome, count }, message)
  }
  return {
    wants: (outcome, error) =>
      logger.isLevelEnabled(levelOf(outcome, error)) &&
      (error === undefined || rejections.isFirst(outcome, (count) => logRest(outcome, count, error as Error))),
    hear(report) {
      const { outcome, reason } = report
      const message = reason === undefined ? `delivery ${outcome}` : `delivery rejected: ${reason}`
      log(logger, levelOf(outcome, reason), message, report)
    },
  }
}

/** Logs each handler run. */
function runLog(logger: SafeLogger): Listener<RunReport> {
  const levelOf = (outcome: RunReport['outcome'], error: unknown): LogLevel =>
    outcome === 'handled' && error !== undefined ? 'error' : runLevels[outcome]
  return {
    wants: (outcome, error) => logger.isLevelEnabled(levelOf(outcome, error)),
    hear: (report) => log(logger, levelOf(report.outcome, report.error), runLine(report), report),
  }
}

const conflictLog = (logger: SafeLogger): Listener<ConflictReport> => ({
  hear: (report) =>
    throttled(logger).warn(
      { ...report },
      'a duplicate has a different payload than the accepted delivery with the same key',
    ),
})

function log(
  logger: SafeLogger,
  level: LogLevel,
  message: string,
  { error: err, ...details }: DeliveryReport | RunReport,
): void {
  logger[level](err === undefined ? details : { ...details, err }, message)
}

function runLine({ outcome, handler, attempt, retryInMs = 0, error }: RunReport): string {
  const result =
    outcome !== 'handled' ? 'failed' : error === undefined ? 'handled an event' : 'failed after its transaction'
  const summary = `handler ${handler} ${result} in attempt ${attempt}`
  if (outcome === 'retried') return `${summary} and will run again in ${durationText(Math.round(retryInMs))}`
  return outcome === 'dead-lettered' ? `${summary}, its last: the event becomes a dead letter` : summary
}
