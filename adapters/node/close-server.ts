import type { Server } from 'node:http'
import { type CloseReport, type Receiver, WebhookError } from '../../src/index.ts'
import { checkOptions, timeLimit } from '../../src/internal/check-options.ts'
import { maxWaitMs, within } from '../../src/internal/timers.ts'
import { destroySessions } from '../shared/http2-sessions.ts'
import { announceClose, closeIdleConnections } from '../shared/idle-connections.ts'

/** The options of `closeServer`. */
export interface CloseServerOptions {
  /**
   * Maximum wait for requests and handlers together (ms). Requests get at most half. `Infinity`: no limit.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number
}

type HttpServer = { close(callback: () => void): unknown } & Partial<
  Pick<Server, 'closeIdleConnections' | 'closeAllConnections'>
>

/**
 * A server of `node:http`, `node:https` or `node:http2`, as `listen` of Express and Koa and `serve` of
 * `@hono/node-server` return it, or a Fastify instance.
 */
export type ClosableServer = HttpServer & { readonly server?: unknown }

/** A receiver, as far as it is closed. */
export type ClosableReceiver = Pick<Receiver, 'close'> & { readonly inbox?: Pick<Receiver['inbox'], 'retryNow'> }

/** Shortest wait for the hooks of a Fastify instance (ms). */
const minHooksMs = 1_000

/**
 * Closes a server and its receiver, or several receivers, without losing a delivery: from now on each answer ends its
 * connection, 0.1 s later the server stops listening, waits for the requests in flight, closes idle connections, then
 * closes the receivers. A Fastify instance then runs its `onClose` hooks, in what is left of the time, at least 1 s.
 *
 * ```ts
 * const { unfinished } = await closeServer(server, receiver, { timeoutMs: 20_000 })
 * ```
 *
 * At the end of a process, {@link closeOnSignals} does it.
 * @returns the unfinished events of all receivers
 * @throws WebhookError `invalid_option`; for a wrong option, once all is closed as by default
 */
export async function closeServer(
  server: ClosableServer,
  receiver: ClosableReceiver | readonly ClosableReceiver[],
  options: CloseServerOptions = {},
): Promise<CloseReport> {
  const receivers = checkClosable('closeServer', server, receiver)
  const wrong = wrongIn(options)
  const { timeoutMs = 10_000 } = wrong === undefined ? options : {}
  const startedAt = performance.now()
  const left = () => timeoutMs - Math.min(timeoutMs, performance.now() - startedAt)
  const http = isFastify(server) ? server.server : server
  for (const { inbox } of receivers) inbox?.retryNow?.()
  await endRequests(http, timeoutMs)
  try {
    const report = await closeAll(receivers, left())
    if (wrong !== undefined) throw wrong
    return report
  } finally {
    http.closeAllConnections?.()
    destroySessions(http)
    if (isFastify(server)) await within(Math.min(Math.max(left(), minHooksMs), maxWaitMs), runHooks(server), hooksLate)
  }
}

/**
 * @returns the receivers as a list
 * @throws WebhookError `invalid_option` without a server or a receiver
 */
export function checkClosable<Of extends ClosableReceiver>(
  owner: string,
  server: ClosableServer,
  receiver: Of | readonly Of[],
): readonly Of[] {
  const receivers = [receiver].flat() as Of[]
  const canClose = (each: { close?: unknown } | null | undefined) => typeof each?.close === 'function'
  if (canClose(server) && receivers.length > 0 && receivers.every(canClose)) return receivers
  throw new WebhookError('invalid_option', `${owner}: pass a server and its receiver: ${owner}(server, receiver)`)
}

/** Not by its `close`, which would end its receiver and its other hooks before the requests, and ignore `timeoutMs`. */
const isFastify = (
  server: ClosableServer,
): server is ClosableServer & { readonly server: HttpServer; close(): Promise<unknown> } =>
  typeof (server.server as Partial<HttpServer> | null | undefined)?.close === 'function'

/** Runs the `onClose` hooks. After them, a Fastify before 4.20 rejects because its server has already been closed. */
async function runHooks(server: { close(): Promise<unknown> }): Promise<void> {
  await server.close().catch((error: Error & { readonly code?: string }) => {
    if (error.code !== 'ERR_SERVER_NOT_RUNNING') throw error
  })
}

async function endRequests(server: HttpServer, timeoutMs: number): Promise<void> {
  let stopClosingIdle = () => {}
  const requestsEnd = async () => {
    await announceClose(server, timeoutMs / 4)
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      stopClosingIdle = closeIdleConnections(server, resolve)
    })
  }
  await within(Math.min(timeoutMs / 2, maxWaitMs), requestsEnd(), () => {})
  stopClosingIdle()
}

/** Closes every receiver, also if one fails. */
async function closeAll(receivers: readonly ClosableReceiver[], timeoutMs: number): Promise<CloseReport> {
  const results = await Promise.allSettled(receivers.map(async (receiver) => receiver.close({ timeoutMs })))
  const failed = results.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined
  if (failed !== undefined) throw failed.reason
  return { unfinished: results.flatMap((each) => (each as PromiseFulfilledResult<CloseReport>).value.unfinished) }
}

function hooksLate(): never {
  throw new Error('closeServer: an onClose hook of Fastify has not ended in time')
}

/** Thrown only once all is closed: failing early at shutdown would lose waiting events. */
function wrongIn(options: CloseServerOptions): unknown {
  try {
    return checkOptions('closeServer', options, { timeoutMs: timeLimit })
  } catch (error) {
    return error
  }
}
