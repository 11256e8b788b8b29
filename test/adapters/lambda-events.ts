import type { ALBEvent, APIGatewayProxyEvent, APIGatewayProxyEventV2 } from 'aws-lambda'

/** A request, in the parts that the gateways make events of. */
export interface Request {
  readonly method?: string
  readonly path?: string
  /** The query as the client wrote it, without the question mark. */
  readonly query?: string
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: Uint8Array | string
  /** `true` if the gateway takes the body for binary data. */
  readonly base64?: boolean
}

const bodyOf = ({ body, base64 = false }: Request) => ({
  body: body === undefined ? null : Buffer.from(body).toString(base64 ? 'base64' : 'utf8'),
  isBase64Encoded: base64,
})

const lists = (pairs: Iterable<readonly [string, string]>): Record<string, string[]> => {
  const found: Record<string, string[]> = {}
  for (const [name, value] of pairs) found[name] = [...(found[name] ?? []), value]
  return found
}
const last = (values: Record<string, string[]>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, all]) => [name, all.at(-1) as string]))

/** Payload 1.0 of API Gateway: names of headers as sent, the query decoded, and all of it twice. */
export function restApiEvent(request: Request): APIGatewayProxyEvent {
  const { method = 'POST', path = '/webhooks/media', query = '', headers = [] } = request
  const [fields, parameters] = [lists(headers), lists(new URLSearchParams(query))]
  return {
    resource: '/webhooks/media',
    path,
    httpMethod: method,
    headers: last(fields),
    multiValueHeaders: fields,
    queryStringParameters: query === '' ? null : last(parameters),
    multiValueQueryStringParameters: query === '' ? null : parameters,
    pathParameters: null,
    stageVariables: null,
    requestContext: {
      path: `/prod${path}`,
      stage: 'prod',
      httpMethod: method,
    } as APIGatewayProxyEvent['requestContext'],
    ...bodyOf(request),
  }
}

/** Payload 2.0 of HTTP APIs and function URLs: names in lower case, several values joined, cookies apart. */
export function httpApiEvent(request: Request): APIGatewayProxyEventV2 {
  const { method = 'POST', path = '/webhooks/media', query = '', headers = [] } = request
  const fields = lists(headers.map(([name, value]) => [name.toLowerCase(), value]))
  const { body, ...encoding } = bodyOf(request)
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    cookies: ['session=1'],
    headers: Object.fromEntries(Object.entries(fields).map(([name, values]) => [name, values.join(',')])),
    requestContext: { http: { method, path } } as APIGatewayProxyEventV2['requestContext'],
    ...(body !== null && { body }),
    ...encoding,
  }
}

/** An event of a load balancer: names in lower case, the query as sent, each once, or in lists if it is told so. */
export function loadBalancerEvent(request: Request, multiValue: boolean): ALBEvent {
  const { method = 'POST', path = '/webhooks/media', query = '', headers = [] } = request
  const fields = lists(headers.map(([name, value]) => [name.toLowerCase(), value]))
  const pairs = query.split('&').filter((pair) => pair !== '')
  const parameters = lists(pairs.map((pair) => pair.split('=', 2) as [string, string]))
  return {
    requestContext: { elb: { targetGroupArn: 'arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/a/b' } },
    httpMethod: method,
    path,
    ...(multiValue
      ? { multiValueHeaders: fields, multiValueQueryStringParameters: parameters }
      : { headers: last(fields), queryStringParameters: last(parameters) }),
    ...bodyOf(request),
    body: bodyOf(request).body ?? '',
  }
}
