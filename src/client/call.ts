import type * as z from 'zod'
import { retrySchedule } from '../handlers/retry.ts'
import { ApiError } from './api-error.ts'
import { type Answer, attempt } from './attempt.ts'
import type { ClientConfig } from './options.ts'
import { readAnswer } from './read-answer.ts'
import { type Endpoint, type Input, makeRequest } from './request.ts'

/** What each method of the client takes last. */
export interface CallOptions {
  /** Ends the call, its retries and their pauses included. */
  readonly signal?: AbortSignal | undefined
}

/** Calls an endpoint, as often as it takes and is safe. */
export type Call = <Schema extends z.ZodType>(
  endpoint: Endpoint<Schema>,
  input: Input & CallOptions,
) => Promise<z.output<Schema>>

/** A server that asks for more is not waited for. */
const longestPauseMs = 60_000

export function createCall(config: ClientConfig, pause: Pause = pauseFor): Call {
  const schedule = retrySchedule({ attempts: config.retries + 1, baseMs: 500, maxMs: longestPauseMs })

  return async (endpoint, { signal, ...input }) => {
    const request = makeRequest(endpoint, input)
    // Whether an attempt that failed may have done all the same what it was to do.
    let mayBeDone = false
    for (let number = 1; ; number++) {
      try {
        const answer = await attempt(request, config, signal)
        const isGone = endpoint.method === 'DELETE' && mayBeDone && answer.status === 404
        return readAnswer(request, isGone ? deleted(answer) : answer, endpoint.answer, config)
      } catch (error) {
        if (!(error instanceof ApiError) || !isSafeToRepeat(endpoint, error)) throw error
        const waitMs = error.retryAfterMs ?? schedule.delayAfter(number)
        if (number === schedule.attempts || waitMs > longestPauseMs) throw error
        mayBeDone ||= error.code !== 'rate_limited'
        await pause(waitMs, signal)
      }
    }
  }
}

const deleted = ({ headers }: Answer): Answer => ({ status: 204, headers, text: '' })

function isSafeToRepeat({ method }: Endpoint<z.ZodType>, { code, status = 0 }: ApiError): boolean {
  if (code === 'rate_limited') return true
  return method !== 'POST' && (code === 'connection' || code === 'timeout' || [502, 503, 504].includes(status))
}

/** A pause that ends early, without an error, when the signal is aborted. */
type Pause = (ms: number, signal?: AbortSignal) => Promise<void>

export const pauseFor: Pause = (ms, signal) =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
    if (signal?.aborted) end()
  })
