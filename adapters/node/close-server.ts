import type { Server } from 'node:http'
import { type CloseReport, type Receiver, WebhookError } from '../../src/index.ts'
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

/** From `node:http`, `node:https` or `node:http2`. */
type ClosableServer = { close(callback: () => void): unknown } & Partial<
  Pick<Server, 'closeIdleConnections' | 'closeAllConnections'>
>

/**
 * Closes a server and its receiver without losing a delivery: from now on each answer ends its connection, 0.1 s later
 * the server stops listening, waits for the requests in flight, closes idle connections, then closes the receiver.
 *
 * ```ts
 * process.once('SIGTERM', async () => {
 *   await closeServer(server, receiver)
 *   process.exit()
 * })
 * ```
 * @throws WebhookError `invalid_option`
 */
export async function closeServer(
  server: ClosableServer,
  receiver: Pick<Receiver, 'close'> & { readonly inbox?: Pick<Receiver['inbox'], 'retryNow'> },
  options: CloseServerOptions = {},
): Promise<CloseReport> {
  if (typeof server?.close !== 'function' || typeof receiver?.close !== 'function') {
    const message = 'closeServer: pass a server and its receiver: closeServer(server, receiver)'
    throw new WebhookError('invalid_option', message)
  }
  const isValid = areValid(options)
  const { timeoutMs = 10_000 } = isValid ? options : {}
  const startedAt = performance.now()
  receiver.inbox?.retryNow?.()
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
  try {
    const left = timeoutMs - Math.min(timeoutMs, performance.now() - startedAt)
    // Invalid options go to the receiver, which closes, then rejects with the fault.
    return await receiver.close(isValid ? { timeoutMs: left } : options)
  } finally {
    server.closeAllConnections?.()
    destroySessions(server)
  }
}

function areValid(options: CloseServerOptions): boolean {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return false
  const { timeoutMs = 0, ...unknown } = options
  return typeof timeoutMs === 'number' && timeoutMs >= 0 && Object.keys(unknown).length === 0
}
