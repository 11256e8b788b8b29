import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { onTestFinished } from 'vitest'
import { createApi } from '../../../../src/service/emulator/api/app.ts'
import type { DeliveryRecord } from '../../../../src/service/emulator/sending/sending.ts'
import type { EmulatedService } from '../../../../src/service/emulator/service/service.ts'
import { Changes } from '../../../../src/service/emulator/shared/changes.ts'
import { newIdOf } from '../../../../src/service/emulator/shared/undocumented.ts'
import { Workspace } from '../../../../src/service/emulator/workspace/workspace.ts'

export const credentials = { publicKey: 'account-public', secretKey: 'account-secret', accessToken: 'account-token' }
export const keyPair = (publicKey: string, secretKey: string) => ({
  'stream-public-key': publicKey,
  'stream-secret-key': secretKey,
})
export const account = keyPair(credentials.publicKey, credentials.secretKey)
export const aUuid = '7f0f8a3e-6a0c-4c59-9d0f-0c1f6a4b2d11'

/** The time at which a test starts: 2026-03-01T00:00:00Z. */
const epoch = 1_772_323_200_000_000_000n

/** An answer of the API. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: the tests check its shape.
  readonly body: any
}

/** Makes the record of a test delivery that was answered with a status. */
export const answered = (status: number): DeliveryRecord => ({
  ...delivery,
  answer: { status, headers: {}, body: '' },
  ...(status === 200 ? {} : { failure: { reason: 'status', message: `answered ${status}` } }),
})

/** Makes the record of a test delivery without an answer. */
export const unanswered = (reason: 'timeout' | 'connection', message: string): DeliveryRecord => ({
  ...delivery,
  failure: { reason, message },
})

const delivery = {
  attempt: 1,
  request: { url: 'http://127.0.0.1/', headers: {}, body: '{}' },
  startedAt: new Date(0),
  durationMs: 1,
}

/** Serves the API under `/api` for the duration of the test, with a clock that the test moves. */
export async function serveApi(service: Partial<Pick<EmulatedService, 'profile' | 'check'>> = {}) {
  const { profile = 'documented', check = async () => answered(200) } = service
  const time = { now: epoch }
  const changes = new Changes()
  const workspace = new Workspace({ clock: () => time.now, newId: newIdOf[profile], changes, credentials })
  const app = new Hono().route('/api', createApi({ profile, workspace, check }))
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false })).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/api`

  async function request(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(url + path, { method, ...init })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }

  /** Sends a request with the account's credentials, with a JSON body if one is given. */
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = account) =>
    request(
      method,
      path,
      body === undefined
        ? { headers }
        : { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) },
    )

  return {
    port,
    url,
    workspace,
    changes,
    request,
    call,
    /** Moves the clock. */
    pass: (seconds: number) => {
      time.now += BigInt(Math.round(seconds * 1e6)) * 1_000n
    },
    webhook: async (fields: object = {}): Promise<{ id: string }> =>
      (await call('POST', '/webhooks', { url: 'https://example.org/hooks', encoding_finished: true, ...fields })).body
        .data.webhook,
    apiKey: async (fields: object = {}): Promise<{ id: string; public_key: string; secret: string }> =>
      (await call('POST', '/api_keys', { api_key_name: 'a key', ...fields })).body.data.api_key,
  }
}
