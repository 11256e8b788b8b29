import type { ErrorHandler, NotFoundHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { WebhookError, type WebhookErrorCode } from '../../../errors.ts'
import { errorBody } from '../shared/undocumented.ts'

const statuses: Partial<Record<WebhookErrorCode, ContentfulStatusCode>> = {
  invalid_option: 400,
  overloaded: 503,
  closing: 503,
  timeout: 504,
}

export const answerError: ErrorHandler = (error, context) => {
  const status = statusOf(error)
  if (status === 503) context.header('Retry-After', '1')
  if (status !== 500) return context.json(errorBody(status, error.message), status)
  // A bug in the emulator. Its user is a developer on this machine: log the details.
  console.error(error)
  return context.json(errorBody(status, 'internal error in the emulator: see its console'), status)
}

function statusOf(error: Error): ContentfulStatusCode {
  if (error instanceof HTTPException) return error.status
  return (error instanceof WebhookError ? statuses[error.code] : undefined) ?? 500
}

export const answerNotFound: NotFoundHandler = (context) =>
  context.json(errorBody(404, `there is nothing at ${context.req.path}`), 404)
