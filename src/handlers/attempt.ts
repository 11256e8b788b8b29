import type { AcceptedEvent, Attempt, AttemptResult, Handle } from '../inbox/inbox.ts'
import type { InContext } from '../internal/async-context.ts'
import { type Logger, throttled } from '../internal/logger.ts'
import { isPromise, type MaybePromise } from '../internal/maybe-promise.ts'
import { ruleOf } from './expectations.ts'
import { failedResult, longestDelay, makeFailure, type NewFailure } from './failed-runs.ts'
import { type Failure, HandlerRun } from './handler-run.ts'
import type { Limiter, Permit } from './limits.ts'
import type { HandlerRegistry, RegisteredHandler } from './registry.ts'
import type { AttemptReport, RunReporter } from './reports.ts'
import type { RetrySchedule } from './retry.ts'

export interface AttemptOptions {
  readonly registry: HandlerRegistry
  readonly reporter: RunReporter
  readonly logger: Logger
  readonly handlerTimeoutMs: number
  /** `undefined`: a failure is final and the sender gets 500. */
  readonly retry: RetrySchedule | undefined
}

/** An attempt under way. */
interface Progress {
  readonly accepted: AcceptedEvent
  readonly attempt: Attempt
  readonly handlers: readonly RegisteredHandler[]
  /** Keeps names that are no longer registered: a rollback may bring them back. */
  completed: readonly string[]
  /** Runs that failed in this attempt. */
  readonly failed: NewFailure[]
  /** `true` if handlers are skipped: paused, at their limit, or registered in another process only. */
  hasSkipped: boolean | undefined
  /** Longest release among the handlers skipped at their limit (ms). */
  releaseMs: number
}

/** Runs an event's handlers one after another. The result tells the inbox what to do next. */
export function createHandle(options: AttemptOptions): Handle {
  return async (accepted, attempt) => {
    const handlers = options.registry.handlersOf(accepted.event)
    const { completed, lacksHandlers } = attempt
    const progress: Progress = {
      accepted,
      attempt,
      handlers,
      completed,
      failed: [],
      hasSkipped: lacksHandlers,
      releaseMs: 0,
    }
    if (handlers.length === 0 && !lacksHandlers) checkUnhandled(options, progress)
    for (const handler of handlers) {
      // Once aborted (shutdown, lost lease) no further handler may start, and none of them counts as failed.
      if (attempt.aborted) break
      if (hasEnded(handler, progress)) continue
      const coming = takePermit(options, handler, progress)
      const permit = isPromise(coming) ? await coming : coming
      if (permit === undefined) progress.hasSkipped = true
      else {
        const run = new HandlerRun(accepted, attempt, handler.name, options.logger)
        const ended = start(options, handler, permit, run, progress)
        const failure = isPromise(ended) ? await ended : ended
        const recorded = record(options, handler, run, failure, progress)
        if (isPromise(recorded)) await recorded
      }
    }
    const [outcome, result] = decideEnd(options, progress)
    options.reporter.attempt(outcome, accepted, attempt.number)
    return result
  }
}

/** Fails an event that has lost its handler since it was accepted, e.g. by a deploy. It must not vanish silently. */
function checkUnhandled({ registry, logger, retry }: AttemptOptions, { accepted, attempt, failed }: Progress): void {
  const { event } = accepted
  const { type, key, mediaId } = event
  if (attempt.owesNothing || registry.expectations.mention(type)) return
  const rule = ruleOf(event)
  if (rule !== undefined) {
    // A deploy removed the rule: the expectation ends without a handler.
    throttled(logger).warn({ rule, key, mediaId }, 'an expectation is overdue, but no process has its rule any more')
    return
  }
  const message = 'no handler is registered for its type'
  const run = makeFailure({ handler: 'none', error: message, shared: retry, attempt, before: failed })
  failed.push(run)
  throttled(logger).warn({ type, retryInMs: run.retryInMs }, message)
}

const hasEnded = ({ name }: RegisteredHandler, { attempt, completed }: Progress): boolean =>
  completed.includes(name) || attempt.failures?.some(({ handler, final }) => final && handler === name) === true

/** Takes a handler's permit, which may have to wait for its limit. `undefined` if it must not run in this attempt. */
function takePermit(
  options: AttemptOptions,
  { name, limiter }: RegisteredHandler,
  progress: Progress,
): MaybePromise<Permit | 'unlimited' | undefined> {
  if (progress.attempt.isPaused?.(name)) return undefined
  return limiter === undefined ? 'unlimited' : waitForPermit(options, name, limiter, progress)
}

/** Waits without a slot. `undefined` if the handler is paused or removed meanwhile, or too many attempts wait. */
async function waitForPermit(
  { registry }: AttemptOptions,
  name: string,
  limiter: Limiter,
  progress: Progress,
): Promise<Permit | undefined> {
  const { accepted, attempt } = progress
  const permit = limiter.enter()
  while (!permit.isGranted) {
    const waiting = attempt.whileWaiting?.(permit.next(attempt.signal))
    if (waiting === undefined) {
      limiter.leave(permit)
      progress.releaseMs = Math.max(progress.releaseMs, limiter.releaseMs())
      return undefined
    }
    await waiting
    const isRemoved = !registry.handlersOf(accepted.event).some((registered) => registered.limiter === limiter)
    if (isRemoved || attempt.aborted || attempt.isPaused?.(name)) {
      limiter.leave(permit)
      return undefined
    }
  }
  return permit
}

/** Calls the handler. The failure, once it has ended or its time is over. */
function start(
  { reporter, handlerTimeoutMs }: AttemptOptions,
  { name, handler, limiter, timeoutMs = handlerTimeoutMs }: RegisteredHandler,
  permit: Permit | 'unlimited',
  run: HandlerRun,
  { accepted, attempt }: Progress,
): MaybePromise<Failure | undefined> {
  const span = reporter.startRun?.({ accepted, handler: name, attempt: attempt.number })
  run.span = span
  attempt.run = run
  // Here, since a rate is kept by the clock that the handler sees.
  if (permit !== 'unlimited') limiter?.start(permit)
  const inContext: InContext = span
    ? (call, ...args) => reporter.inContext(() => reporter.within(span, () => call(...args)))
    : reporter.inContext
  return run.start(limiter?.around(handler) ?? handler, timeoutMs, inContext)
}

/** Records and reports the end of a run. */
function record(
  options: AttemptOptions,
  { name, retry }: RegisteredHandler,
  run: HandlerRun,
  failure: Failure | undefined,
  progress: Progress,
): MaybePromise<void> {
  const { attempt, failed, handlers } = progress
  const { hasCommitted, storageFailed } = run
  attempt.run = undefined
  if (failure !== undefined && !hasCommitted) {
    const { error } = failure
    const shared = options.retry
    const end = makeFailure({ handler: name, error, own: retry, shared, storageFailed, attempt, before: failed })
    failed.push(end)
    if (attempt.aborted) return options.reporter.run('stopped', run, error)
    return reportFailure(options, run, error, end.retryInMs === undefined ? undefined : longestDelay(failed))
  }
  if (failure !== undefined) reportFailure(options, run, failure.error)
  else options.reporter.run('handled', run)
  // An aborted handler may have returned early without finishing its work.
  if (attempt.aborted && !hasCommitted) return
  progress.completed = [...progress.completed, name]
  if (handlers.at(-1)?.name !== name) return attempt.succeeded?.(name)
}

function decideEnd(options: AttemptOptions, progress: Progress): [AttemptReport['outcome'], AttemptResult] {
  const { attempt, completed, failed, hasSkipped, releaseMs } = progress
  if (attempt.aborted) return ['stopped', { status: 'retry', delayMs: 0, completed, failures: none }]
  if (failed.length === 0 && hasSkipped)
    return ['released', { status: 'retry', delayMs: releaseMs, completed, failures: none, counts: false }]
  const earlier = attempt.failures?.filter(({ final }) => final) ?? none
  if (failed.length === 0 && earlier.length === 0) return ['handled', handled]
  const result = failedResult(earlier, failed, completed, hasSkipped)
  return [result.status === 'retry' ? 'retried' : finalFailure(options), result]
}

const none: readonly never[] = []

const handled: AttemptResult = Object.freeze({ status: 'done' })

const finalFailure = ({ retry }: AttemptOptions) => (retry === undefined ? 'failed' : 'dead-lettered')

function reportFailure(options: AttemptOptions, run: HandlerRun, error: unknown, retryInMs?: number): void {
  const { registry, reporter } = options
  const { event, handler, context, hasCommitted } = run
  const outcome = hasCommitted ? 'handled' : retryInMs === undefined ? finalFailure(options) : 'retried'
  reporter.run(outcome, run, error, retryInMs)
  for (const onError of registry.errorHandlers) {
    reporter.guarded('onError', () =>
      reporter.inContext(() =>
        onError(error, { event, handler, attempt: context.attempt, willRetry: outcome === 'retried' }),
      ),
    )
  }
}
