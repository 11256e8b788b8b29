import type { Attempt, Handle, HandlerFailure, HandlingResult } from '../inbox/inbox.ts'
import { Deadlines } from '../internal/deadlines.ts'
import type { Logger } from '../internal/logger.ts'
import { isPromise } from '../internal/maybe-promise.ts'
import type { Reporter } from '../receiver/reporter.ts'
import type { Handler } from './handler.ts'
import { HandlerRun } from './handler-run.ts'
import type { HandlerRegistry, Registration } from './registry.ts'
import type { RetrySchedule } from './retry.ts'

export interface DispatcherOptions {
  readonly registry: HandlerRegistry
  readonly reporter: Reporter
  readonly logger: Logger
  readonly handlerTimeoutMs: number
  /** `undefined`: a failure is final, and the sender is told of it. */
  readonly retry: RetrySchedule | undefined
}

const done: HandlingResult = Object.freeze({ status: 'done' })

/** Runs the handlers of an event, one after another, and says what the inbox has to do next. */
export function createDispatcher(options: DispatcherOptions): Handle {
  const { registry, reporter, logger, handlerTimeoutMs, retry } = options
  const deadlines = new Deadlines(handlerTimeoutMs)

  return async (event, receivedAt, attempt) => {
    const retryInMs = retry && attempt.number < retry.attempts ? retry.delayAfter(attempt.number) : undefined
    const handlers = registry.handlersFor(event.type)
    const failures: HandlerFailure[] = []
    // It was accepted, by this process or by one before it that had a handler: it must not be dropped without a word.
    if (handlers.length === 0) return noHandler(event.type, attempt, retryInMs, logger)
    for (let i = 0; i < handlers.length; i++) {
      const { name, handler } = handlers[i] as Registration
      if (attempt.completed.includes(name)) continue
      const run = new HandlerRun(event, receivedAt, attempt, name, logger)
      const failure = await settle(handler, run, deadlines)
      if (failure === undefined) {
        reporter.handled(run)
        const kept = i + 1 < handlers.length ? attempt.succeeded?.(name) : undefined
        if (isPromise(kept)) await kept
      } else {
        failures.push({ handler: name, message: errorText(failure.error) })
        if (attempt.aborted) reporter.notHandled('stopped', run, failure.error)
        else reportFailure(options, run, failure.error, retryInMs)
      }
      // The inbox took the event back: that is no failure of the handlers, and those that are left must not begin.
      if (attempt.aborted) {
        const begun = handlers.filter(({ name }, index) => index <= i || attempt.completed.includes(name))
        return { status: 'retry', delayMs: 0, completed: completedOf(begun, failures) }
      }
    }
    if (failures.length === 0) return done
    return failed(retryInMs, completedOf(handlers, failures), failures)
  }
}

function noHandler(type: string, { completed }: Attempt, retryInMs: number | undefined, logger: Logger) {
  const message = `no handler is registered for ${type}`
  logger.warn({ type, retryInMs }, message)
  return failed(retryInMs, completed, [{ handler: 'none', message }])
}

const failed = (
  retryInMs: number | undefined,
  completed: readonly string[],
  failures: readonly HandlerFailure[],
): HandlingResult =>
  retryInMs === undefined ? { status: 'dead', completed, failures } : { status: 'retry', delayMs: retryInMs, completed }

/** Runs a handler to its end, or to that of its time; what it threw, if it did. */
async function settle(
  handler: Handler<never>,
  run: HandlerRun,
  deadlines: Deadlines,
): Promise<{ readonly error: unknown } | undefined> {
  deadlines.begin(run)
  try {
    const result = handler(run.event as never, run.context)
    if (isPromise(result)) await run.settled(result)
  } catch (error) {
    return { error }
  } finally {
    deadlines.end(run)
  }
}

function reportFailure(
  { registry, reporter, retry }: DispatcherOptions,
  run: HandlerRun,
  error: unknown,
  retryInMs: number | undefined,
): void {
  const outcome = retryInMs !== undefined ? 'retried' : retry === undefined ? 'failed' : 'dead-lettered'
  reporter.notHandled(outcome, run, error, retryInMs)
  const { event, handler, context } = run
  for (const tell of registry.errorHandlers) {
    reporter.guarded('onError', () =>
      tell(error, { event, handler, attempt: context.attempt, willRetry: outcome === 'retried' }),
    )
  }
}

/** The names of the handlers that succeeded, in this attempt or before. */
const completedOf = (handlers: readonly Registration[], failures: readonly HandlerFailure[]): string[] =>
  handlers.map(({ name }) => name).filter((name) => !failures.some((failure) => failure.handler === name))

// A handler can throw anything, even an object whose conversion to text throws.
function errorText(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  } catch {
    return 'an error that has no text'
  }
}
