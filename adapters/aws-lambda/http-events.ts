import { type Acknowledgement, type Delivery, WebhookError } from '../../src/index.ts'

type Values = { readonly [name: string]: string | null | undefined } | null | undefined
type MultiValues = { readonly [name: string]: readonly string[] | null | undefined } | null | undefined

interface WithBody {
  readonly headers?: Values
  readonly body?: string | null | undefined
  readonly isBase64Encoded?: boolean | undefined
}

/** Event of an API Gateway HTTP API (payload 2.0) or a function URL. */
export interface HttpApiEvent extends WithBody {
  readonly version: string
  readonly rawPath: string
  readonly rawQueryString: string
  readonly requestContext: { readonly http: { readonly method: string } }
}

/** Event of an API Gateway REST API (payload 1.0) or an Application Load Balancer. */
export interface RestApiEvent extends WithBody {
  readonly httpMethod: string
  readonly path: string
  readonly multiValueHeaders?: MultiValues
  readonly queryStringParameters?: Values
  readonly multiValueQueryStringParameters?: MultiValues
  /** Has `elb` behind a load balancer. */
  readonly requestContext: object
}

/** An HTTP request as Lambda passes it to a function. */
export type LambdaHttpEvent = HttpApiEvent | RestApiEvent

/** A function's answer, in the form they all take. */
export interface LambdaHttpResponse {
  statusCode: number
  headers?: Record<string, string>
  /** Instead of `headers`, if the event had them. */
  multiValueHeaders?: Record<string, string[]>
  body: string
  isBase64Encoded: boolean
}

/** @throws WebhookError `invalid_option` for any other event */
export function toDelivery(event: LambdaHttpEvent): Delivery {
  if (isHttpApi(event)) {
    const { rawPath, rawQueryString, requestContext, headers } = event
    return delivery(event, requestContext.http.method, withQuery(rawPath, rawQueryString), multi(headers))
  }
  if (isRestApi(event)) {
    const { httpMethod, path, headers, multiValueHeaders } = event
    return delivery(event, httpMethod, withQuery(path, joinQuery(event)), multiValueHeaders ?? multi(headers))
  }
  const message = 'lambdaHandler: the event is not an HTTP request from API Gateway, a function URL or a load balancer'
  const isSqsEvent = Array.isArray((event as { Records?: unknown } | undefined)?.Records)
  throw new WebhookError('invalid_option', isSqsEvent ? `${message}; pass SQS messages to sqsHandler` : message)
}

const isHttpApi = (event: Partial<LambdaHttpEvent> | null | undefined): event is HttpApiEvent =>
  typeof (event as HttpApiEvent)?.rawPath === 'string' &&
  typeof (event as HttpApiEvent).requestContext?.http?.method === 'string'

const isRestApi = (event: Partial<LambdaHttpEvent> | null | undefined): event is RestApiEvent =>
  typeof (event as RestApiEvent)?.httpMethod === 'string' && typeof (event as RestApiEvent).path === 'string'

function delivery(event: WithBody, method: string, url: string, headers: MultiValues): Delivery {
  return { method, url, headers: new EventHeaders(headers), body: (limit) => decodeBody(event, limit) }
}

function decodeBody({ body, isBase64Encoded }: WithBody, limit: number): Uint8Array | 'too_large' {
  const bytes = Buffer.from(body ?? '', isBase64Encoded === true ? 'base64' : 'utf8')
  return bytes.byteLength > limit ? 'too_large' : bytes
}

const withQuery = (path: string, query: string): string => (query === '' ? path : `${path}?${query}`)

const multi = (values: Values): MultiValues =>
  Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, value == null ? [] : [value]]))

/** Rebuilds the query. API Gateway decoded it, load balancers did not. */
function joinQuery({ multiValueQueryStringParameters, queryStringParameters, requestContext }: RestApiEvent): string {
  const encode = 'elb' in (requestContext ?? {}) ? (text: string) => text : encodeText
  const parameters = Object.entries(multiValueQueryStringParameters ?? multi(queryStringParameters) ?? {})
  return parameters
    .flatMap(([name, values]) => (values ?? []).map((value) => `${encode(name)}=${encode(value)}`))
    .join('&')
}

/** Lone surrogates, which `encodeURIComponent` rejects, become U+FFFD. */
const encodeText = (text: string): string => encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\uFFFD'))

/** Case-insensitive lookup. Repeated headers are joined. */
class EventHeaders {
  readonly #fields: MultiValues

  constructor(fields: MultiValues) {
    this.#fields = fields
  }

  get(name: string): string | null {
    const wanted = name.toLowerCase()
    const fields = Object.entries(this.#fields ?? {}).filter(([each]) => each.toLowerCase() === wanted)
    const values = fields.flatMap(([, each]) => each ?? [])
    return values.length === 0 ? null : values.join(', ')
  }
}

/** Drops content-length, which the gateway sets. */
export function toResponse(
  event: LambdaHttpEvent,
  { status, headers, body }: Pick<Acknowledgement, 'status' | 'headers' | 'body'>,
): LambdaHttpResponse {
  const { 'content-length': _, ...fields } = headers
  const response = { statusCode: status, body, isBase64Encoded: false }
  // A load balancer that passes multi-value headers ignores `headers`.
  if (!('multiValueHeaders' in event) || !event.multiValueHeaders) return { ...response, headers: fields }
  const entries = Object.entries(fields).map(([name, value]) => [name, [value]])
  return { ...response, multiValueHeaders: Object.fromEntries(entries) }
}
