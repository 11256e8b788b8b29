import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { expect } from 'vitest'
import { createCall } from '../../../src/service/client/call.ts'
import { clientOver } from '../../../src/service/client/client.ts'
import { ApiError, type ApiErrorCode, type ClientOptions } from '../../../src/service/client/index.ts'
import { readConfig } from '../../../src/service/client/options.ts'
import { listenUntilEnd } from '../../support/serve.ts'

export const keyPair = { publicKey: 'the-public-key', secretKey: 'the-secret-key' }

/** The answer of a scripted service to one request. */
export type Scripted = Said | ((request: IncomingMessage, response: ServerResponse) => void)

export interface Said {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

export interface Received {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Starts a service that gives each answer in turn, then the last one again, and records the requests. */
export async function serve(...script: Scripted[]) {
  const requests: Received[] = []
  const { server, origin: baseUrl } = await listenUntilEnd(async (request, response) => {
    const { method = '', url = '', headers } = request
    requests.push({ method, url, headers, body: await text(request) })
    const answer = script[Math.min(requests.length, script.length) - 1] ?? {}
    if (typeof answer === 'function') answer(request, response)
    else say(response, answer)
  })
  return { server, baseUrl, requests, ...patientClient({ baseUrl }) }
}

function say(response: ServerResponse, { status = 200, headers = {}, body = {} }: Said) {
  const isText = typeof body === 'string'
  response.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers })
  response.end(isText ? body : JSON.stringify(body))
}

/** Cuts the connection. */
export const cut: Scripted = (request) => void request.socket.destroy()

/** Never answers. */
export const hang: Scripted = () => {}

/** Creates a client that does not wait between attempts, and records the pauses it would have made, in ms. */
export function patientClient(options: ClientOptions) {
  const pauses: number[] = []
  const call = createCall(readConfig(keyPair, options), async (ms) => void pauses.push(ms))
  return { pauses, client: clientOver(call) }
}

/** Returns the error of a failing call. It must be an ApiError with this code, and contain no secret. */
export async function failureOf(code: ApiErrorCode, call: Promise<unknown>): Promise<ApiError> {
  const error = await call.then(
    () => expect.fail('the call did not fail'),
    (error: unknown) => error,
  )
  if (!(error instanceof ApiError)) throw error
  expect(error).toMatchObject({ name: 'ApiError', code })
  expect(inspect(error, { depth: 9, showHidden: true }) + JSON.stringify(error) + error.stack).not.toContain(
    'the-secret',
  )
  return error
}

const webhookOnWire = (fields: object = {}) => ({
  id: 'w1',
  user_id: 'u1',
  name: 'production',
  url: 'https://example.com/hooks',
  file_received: false,
  encoding_started: false,
  partial_finished: false,
  encoding_finished: true,
  encoding_failed: false,
  created_at: '2026-03-01T10:00:00.123456Z',
  updated_at: '2026-03-01T10:00:00.123456Z',
  last_triggered_at: null,
  ...fields,
})

export const oneWebhook = (fields?: object) => ({
  body: { status: 'success', data: { webhook: webhookOnWire(fields) } },
})
