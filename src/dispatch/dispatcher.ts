import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/catalogue.ts'
import type { Attempt, Handle, HandlerFailure, HandlingResult } from '../inbox/inbox.ts'
import type { Logger } from '../logger.ts'
import { isPromise } from '../maybe-promise.ts'
import type { Reporter } from '../reporter.ts'
import { RunContext } from './context.ts'
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
  const { registry, retry } = options
  return async (event, receivedAt, attempt) => {
    const retryInMs = retry && attempt.number < retry.attempts ? retry.delayAfter(attempt.number) : undefined
    const completed = [...attempt.completed]
    const failures: HandlerFailure[] = []
    for (const registration of registry.handlersFor(event.type)) {
      if (attempt.completed.includes(registration.name)) continue
      const failure = await runHandler(options, registration, { event, receivedAt, attempt, retryInMs })
      if (failure === undefined) completed.push(registration.name)
      else failures.push(failure)
      // The inbox took the event back: that is no failure of the handlers, and those that are left must not begin.
      if (attempt.aborted) return { status: 'retry', delayMs: 0, completed }
    }
    if (failures.length === 0) return done
    return retryInMs === undefined
      ? { status: 'dead', completed, failures }
      : { status: 'retry', delayMs: retryInMs, completed }
  }
}

interface Run {
  readonly event: MediaEvent
  readonly receivedAt: Date
  readonly attempt: Attempt
  /** The pause after a failure; `undefined` when this is the last attempt. */
  readonly retryInMs: number | undefined
}

async function runHandler(
  { registry, reporter, logger, handlerTimeoutMs, retry }: DispatcherOptions,
  { name, handler }: Registration,
  { event, receivedAt, attempt, retryInMs }: Run,
): Promise<HandlerFailure | undefined> {
  const { key, type, mediaId } = event
  const run = { handler: name, key, type, mediaId, attempt: attempt.number }
  const context = new RunContext(event, receivedAt, attempt, name, logger)
  const startedAt = performance.now()
  try {
    const result = handler(event as never, context)
    if (isPromise(result)) await withTimeout(result, handlerTimeoutMs, context)
    reporter.handling({ ...run, outcome: 'handled', durationMs: performance.now() - startedAt })
    return undefined
  } catch (error) {
    const durationMs = performance.now() - startedAt
    const failure = { handler: name, message: errorText(error) }
    if (attempt.aborted) {
      reporter.handling({ ...run, outcome: 'stopped', durationMs, error })
      return failure
    }
    const outcome = retryInMs !== undefined ? 'retried' : retry === undefined ? 'failed' : 'dead-lettered'
    reporter.handling({ ...run, outcome, durationMs, retryInMs, error })
    const handling = { event, handler: name, attempt: attempt.number, willRetry: outcome === 'retried' }
    for (const tell of registry.errorHandlers) reporter.guarded('onError', () => tell(error, handling))
    return failure
  }
}

/** Waits for a handler, and for no longer than its time. What it does after that is no longer heard. */
function withTimeout(result: Promise<unknown>, timeoutMs: number, context: RunContext): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const error = new WebhookError('timeout', `the handler did not finish within ${timeoutMs} ms`)
      context.abort(error)
      reject(error)
    }, timeoutMs)
    const settle = (finish: (value: unknown) => void) => (value: unknown) => {
      clearTimeout(timer)
      finish(value)
    }
    result.then(settle(resolve), settle(reject))
  })
}

// A handler can throw anything, even an object whose conversion to text throws.
function errorText(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  } catch {
    return 'an error that has no text'
  }
}
