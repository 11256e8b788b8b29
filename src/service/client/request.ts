import type * as z from 'zod'
import { ApiError, type ApiErrorCode, type ApiErrorDetails } from './api-error.ts'
import { renamed, toSnakeCase } from './naming.ts'
import { faultIn, id } from './params.ts'

export interface ApiEndpoint<Schema extends z.ZodType> {
  /** The client's method, such as `webhook.create`. */
  readonly name: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** `true` for a call that must never be repeated: even a 429 doesn't prove that nothing was done. */
  readonly once?: true
  /** The path below the base URL, with `{id}` for the id. */
  readonly path: string
  readonly params?: z.ZodObject
  readonly answer: Schema
}

export interface CallInput {
  readonly id?: string
  readonly params?: object
}

export interface ApiRequest {
  readonly endpoint: ApiEndpoint<z.ZodType>
  /** The path with the id, without the query, which may contain private data. */
  readonly path: string
  readonly query: string
  readonly body: string | undefined
}

/** @throws ApiError `invalid_params` */
export function makeRequest(endpoint: ApiEndpoint<z.ZodType>, input: CallInput): ApiRequest {
  const path = endpoint.path.includes('{id}')
    ? endpoint.path.replace('{id}', () => pathSegment(endpoint, input.id))
    : endpoint.path
  if (endpoint.params === undefined) return { endpoint, path, query: '', body: undefined }
  const fields = renamed(checked(endpoint, endpoint.params, input.params), toSnakeCase) as Record<string, unknown>
  if (endpoint.method !== 'GET') return { endpoint, path, query: '', body: JSON.stringify(fields) }
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  const query = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return { endpoint, path, query: query && `?${query}`, body: undefined }
}

function pathSegment(endpoint: ApiEndpoint<z.ZodType>, value: unknown): string {
  const result = id.safeParse(value)
  if (result.success) return encodeURIComponent(result.data)
  throw invalid(endpoint, `the id ${result.error.issues[0]?.message}`)
}

function checked(endpoint: ApiEndpoint<z.ZodType>, schema: z.ZodObject, given: unknown): Record<string, unknown> {
  const result = schema.safeParse(given)
  if (result.success) return result.data
  throw invalid(endpoint, faultIn(result.error, schema, 'parameter'))
}

const invalid = ({ name, method, path }: ApiEndpoint<z.ZodType>, fault: string) =>
  new ApiError('invalid_params', `${name}: ${fault}`, { method, path })

export function failure(
  { endpoint, path }: ApiRequest,
  code: ApiErrorCode,
  message: string,
  { cause, ...details }: Omit<ApiErrorDetails, 'method' | 'path'> & ErrorOptions = {},
): ApiError {
  const options = cause === undefined ? undefined : { cause }
  return new ApiError(code, `${endpoint.name}: ${message}`, { method: endpoint.method, path, ...details }, options)
}
