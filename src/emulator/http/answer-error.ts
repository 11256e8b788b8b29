import type { ErrorHandler, NotFoundHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { WebhookError, type WebhookErrorCode } from '../../errors.ts'
import { errorBody } from '../shared/undocumented.ts'

const statuses: Partial<Record<WebhookErrorCode, ContentfulStatusCode>> = {
  invalid_option: 400,
  overloaded: 503,
  closing: 503,
  timeout: 504,
}

/** Answers what was thrown, in the form of the service. */
export const answerError: ErrorHandler = (error, context) => {
  const status = statusOf(error)
  if (status === 503) context.header('Retry-After', '1')
  if (status !== 500) return context.json(errorBody(status, error.message), status)
  // A fault of the emulator, whose user is a developer on this machine.
  console.error(error)
  return context.json(errorBody(status, 'the emulator failed: its console says how'), status)
}

function statusOf(error: Error): ContentfulStatusCode {
  if (error instanceof HTTPException) return error.status
  return (error instanceof WebhookError ? statuses[error.code] : undefined) ?? 500
}

export const answerNotFound: NotFoundHandler = (context) =>
  context.json(errorBody(404, `there is nothing at ${context.req.path}`), 404)
