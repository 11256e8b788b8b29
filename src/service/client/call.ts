import type * as z from 'zod'
import { retrySchedule } from '../../handlers/retry.ts'
import { sleep } from '../../internal/timers.ts'
import { ApiError } from './api-error.ts'
import { type ApiAnswer, sendOnce } from './attempt.ts'
import type { ClientConfig } from './options.ts'
import { readAnswer } from './read-answer.ts'
import { type ApiEndpoint, type CallInput, makeRequest } from './request.ts'

/** The last argument of every method of the client. */
export interface CallOptions {
  /** Aborts the call with its retries and delays. It then rejects with `aborted`. */
  readonly signal?: AbortSignal | undefined
}

/** Calls an endpoint, with retries where they are safe. */
export type Call = <Schema extends z.ZodType>(
  endpoint: ApiEndpoint<Schema>,
  input: CallInput & CallOptions,
) => Promise<z.output<Schema>>

/** Longest delay the client waits out (ms). Past it the call fails at once. */
const maxDelayMs = 60_000

/** @param delay waits before a retry; replaced in tests, and by commands that print why they wait */
export function createCall(config: ClientConfig, delay: Delay = sleep): Call {
  const schedule = retrySchedule({ attempts: config.retries + 1, baseMs: 500, maxMs: maxDelayMs })

  return async (endpoint, { signal, ...input }) => {
    const request = makeRequest(endpoint, input)
    // A failed attempt may still have taken effect.
    let mayBeDone = false
    for (let attemptNumber = 1; ; attemptNumber++) {
      try {
        const answer = await sendOnce(request, config, signal)
        const isGone = endpoint.method === 'DELETE' && mayBeDone && answer.status === 404
        return readAnswer(request, isGone ? deleted(answer) : answer, endpoint.answer, config)
      } catch (error) {
        if (!(error instanceof ApiError) || !isSafeToRepeat(endpoint, error)) throw error
        const delayMs = error.retryAfterMs ?? schedule.delayAfter(attemptNumber)
        if (attemptNumber === schedule.attempts || delayMs > maxDelayMs) throw error
        mayBeDone ||= error.code !== 'rate_limited'
        await delay(delayMs, signal, error)
      }
    }
  }
}

const deleted = ({ headers }: ApiAnswer): ApiAnswer => ({ status: 204, headers, text: '' })

function isSafeToRepeat({ method, once }: ApiEndpoint<z.ZodType>, { code, status = 0 }: ApiError): boolean {
  if (once) return false
  if (code === 'rate_limited') return true
  return method !== 'POST' && (code === 'connection' || code === 'timeout' || [502, 503, 504].includes(status))
}

/** Waits before a retry. Resolves early, without an error, when the signal aborts. */
type Delay = (ms: number, signal: AbortSignal | undefined, error: ApiError) => Promise<void>
