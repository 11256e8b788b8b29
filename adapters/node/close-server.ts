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
 * @throws WebhookError `invalid_option`; for a wrong option, once all is closed as by default
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
  const wrong = wrongIn(options)
  const { timeoutMs = 10_000 } = wrong === undefined ? options : {}
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
    const report = await receiver.close({ timeoutMs: left })
    if (wrong !== undefined) throw wrong
    return report
  } finally {
    server.closeAllConnections?.()
    destroySessions(server)
  }
}

/** Thrown only once all is closed: failing early at shutdown would lose waiting events. */
function wrongIn(options: CloseServerOptions): unknown {
  try {
    return checkOptions('closeServer', options, { timeoutMs: timeLimit })
  } catch (error) {
    return error
  }
}
