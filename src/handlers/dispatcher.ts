import type { Attempt, Handle, HandlingResult } from '../inbox/inbox.ts'
import type { HandlerFailure } from '../inbox/reading.ts'
import { Deadlines } from '../internal/deadlines.ts'
import type { Logger } from '../internal/logger.ts'
import { isPromise } from '../internal/maybe-promise.ts'
import { HandlerRun } from './handler-run.ts'
import type { HandlerRegistry, RegisteredHandler } from './registry.ts'
import type { AttemptReport, RunReporter } from './reports.ts'
import type { RetrySchedule } from './retry.ts'

export interface DispatcherOptions {
  readonly registry: HandlerRegistry
  readonly reporter: RunReporter
  readonly logger: Logger
  readonly handlerTimeoutMs: number
  /** `undefined`: a failure is final, and the sender gets 500. */
  readonly retry: RetrySchedule | undefined
  /** `true` if handlers run where work goes on between requests, on Workers too. */
  readonly outlivesRequests?: boolean | undefined
}

const done: HandlingResult = Object.freeze({ status: 'done' })

/**
 * Makes the function that runs the handlers of an event, one after another. Its result tells the inbox what to do next.
 */
export function createDispatcher(options: DispatcherOptions): Handle {
  const { registry, reporter, logger, handlerTimeoutMs, retry, outlivesRequests } = options
  const deadlines = new Deadlines(handlerTimeoutMs, outlivesRequests)

  return async (accepted, attempt) => {
    const { event } = accepted
    // The delay is random, so it is drawn once for the event, however many of its handlers fail.
    let retryInMs: number | undefined
    const handlers = registry.handlersFor(event.type)
    const failures: HandlerFailure[] = []
    // Names of handlers that are no longer registered stay: a rollback may register them again.
    const completed = [...attempt.completed]
    if (handlers.length === 0) {
      // One existed when the event was accepted, perhaps in an earlier process: the event must not vanish silently.
      const message = `no handler is registered for ${event.type}`
      retryInMs = delayAfter(attempt, retry)
      logger.warn({ type: event.type, retryInMs }, message)
      failures.push({ handler: 'none', message })
    }
    for (let i = 0; i < handlers.length; i++) {
      const { name, handler } = handlers[i] as RegisteredHandler
      if (completed.includes(name)) continue
      const run = new HandlerRun(accepted, attempt, name, logger)
      run.span = reporter.startRun?.({ accepted, handler: name, attempt: attempt.number })
      deadlines.add(run)
      const finishing = run.finish(handler)
      const failure = isPromise(finishing) ? await finishing : finishing
      deadlines.remove(run)
      if (failure === undefined || run.hasCommitted) {
        if (failure) reportFailure(options, run, failure.error)
        else reporter.run('handled', run)
        completed.push(name)
        const persisted = i + 1 < handlers.length ? attempt.succeeded?.(name) : undefined
        if (isPromise(persisted)) await persisted
      } else {
        retryInMs ??= delayAfter(attempt, retry)
        failures.push({ handler: name, message: errorText(failure.error) })
        if (attempt.aborted) reporter.run('stopped', run, failure.error)
        else reportFailure(options, run, failure.error, retryInMs)
      }
      // The inbox took the event back. The handlers have not failed, and the remaining ones must not start.
      if (attempt.aborted) break
    }
    const result = resultOf(attempt, completed, failures, retryInMs)
    reporter.attempt(outcomeOf(result, attempt, retry), accepted, attempt.number)
    return result
  }
}

function resultOf(
  { aborted }: Attempt,
  completed: readonly string[],
  failures: readonly HandlerFailure[],
  retryInMs: number | undefined,
): HandlingResult {
  if (aborted) return { status: 'retry', delayMs: 0, completed, failures: [] }
  if (failures.length === 0) return done
  return retryInMs === undefined
    ? { status: 'dead', completed, failures }
    : { status: 'retry', delayMs: retryInMs, completed, failures }
}

function outcomeOf(
  { status }: HandlingResult,
  { aborted }: Attempt,
  retry: RetrySchedule | undefined,
): AttemptReport['outcome'] {
  if (aborted) return 'stopped'
  if (status === 'done') return 'handled'
  if (status === 'retry') return 'retried'
  return retry === undefined ? 'failed' : 'dead-lettered'
}

/** Returns the pause before the next attempt, in ms; `undefined` when this one was the last. */
const delayAfter = ({ number }: Attempt, retry: RetrySchedule | undefined): number | undefined =>
  retry !== undefined && number < retry.attempts ? retry.delayAfter(number) : undefined

function reportFailure(
  { registry, reporter, retry }: DispatcherOptions,
  run: HandlerRun,
  error: unknown,
  retryInMs?: number,
): void {
  const { event, handler, context, hasCommitted } = run
  const final = hasCommitted ? 'handled' : retry === undefined ? 'failed' : 'dead-lettered'
  const outcome = retryInMs === undefined ? final : 'retried'
  reporter.run(outcome, run, error, retryInMs)
  for (const onError of registry.errorHandlers) {
    reporter.guarded('onError', () =>
      onError(error, { event, handler, attempt: context.attempt, willRetry: outcome === 'retried' }),
    )
  }
}

/** The most characters of an error that are stored: some carry a whole page. */
const longestText = 2_000

// A handler can throw anything, even an object whose conversion to a string throws.
function errorText(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    return text.length > longestText ? `${text.slice(0, longestText)}…` : text
  } catch {
    return 'an unprintable error'
  }
}
