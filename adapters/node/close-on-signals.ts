import type { CloseReport, Logger, MaybePromise, Receiver } from '../../src/index.ts'
import { aFunction, checkOptions, timeLimit } from '../../src/internal/check-options.ts'
import { consoleLine, consoleLogger, defaultLogger } from '../../src/internal/logger.ts'
import { maxWaitMs, msSince, within } from '../../src/internal/timers.ts'
import { type ClosableReceiver, type ClosableServer, checkClosable, closeServer } from './close-server.ts'
import { Shutdown } from './shutdown.ts'

/** The options of `closeOnSignals`. */
export interface CloseOnSignalsOptions {
  /**
   * Maximum wait for requests and handlers together (ms), as in `closeServer`. The process ends at most 5 s later: give
   * your platform a longer grace period. `Infinity`: no limit.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number
  /**
   * Called after all is closed, or has failed to, and before the process ends: to end a pool, or to export telemetry.
   * Gets the unfinished events. If it fails, the process ends with 1.
   */
  readonly onClosed?: (report: CloseReport) => MaybePromise<unknown>
}

interface LostEvent {
  readonly key: string
  readonly type: string
  readonly mediaId: string
}

type SignalledReceiver = ClosableReceiver & Partial<Pick<Receiver, 'setup'>>

/** What the process may take beyond `timeoutMs`: storage that does not answer, and `onClosed` (ms). */
const lastStepsMs = 5_000

/** Lost events in the log. */
const maxLogged = 100

/**
 * Closes a server and its receivers on SIGTERM or SIGINT, as `closeServer` does, logs one line, and ends the process:
 * with 0 (or your `process.exitCode`) after a clean close, with 1 if the close failed or a memory inbox lost events. A
 * second signal changes nothing. After several calls, the process ends once all of them have closed.
 *
 * ```ts
 * closeOnSignals(app.listen(3000), receiver, { timeoutMs: 20_000 })
 * ```
 *
 * The line goes to the receiver's logger, at level `info` or `error`, and without one to the console.
 * @param server what `listen` of Express, Koa and `node:http` or `serve` of `@hono/node-server` returns, or a Fastify
 * instance. Anything else: `{ close(done) { … } }`
 * @param receiver a receiver, or several
 * @returns a function that removes it: for tests and hot reload
 * @throws WebhookError `invalid_option`
 */
export function closeOnSignals(
  server: ClosableServer,
  receiver: SignalledReceiver | readonly SignalledReceiver[],
  options: CloseOnSignalsOptions = {},
): () => void {
  const receivers = checkClosable('closeOnSignals', server, receiver)
  checkOptions('closeOnSignals', options, { timeoutMs: timeLimit, onClosed: aFunction })
  const { timeoutMs = 10_000, onClosed = () => {} } = options
  const logger = loggerOf(receivers)
  return Shutdown.ofProcess().add(async (signal) => {
    const lost: LostEvent[] = []
    const startedAt = performance.now()
    const closing = closeServer(server, receivers.map(noting(lost)), { timeoutMs })
    const closed = closing.finally(async () => onClosed(await closing.catch(() => ({ unfinished: [] }))))
    try {
      const { unfinished } = await within(Math.min(timeoutMs + lastStepsMs, maxWaitMs), closed, late)
      const details = { signal, durationMs: Math.round(msSince(startedAt)), unfinished: unfinished.length }
      if (lost.length === 0) logger.info(details, 'closed')
      else
        logger.error(
          { ...details, lost: lost.slice(0, maxLogged) },
          'closed; events in memory had no time, and are lost',
        )
      return lost.length === 0
    } catch (err) {
      logger.error({ err, signal }, 'closing failed')
      return false
    }
  })
}

/** The console, also at level `info`. */
const verboseConsole: Logger = {
  ...consoleLogger,
  level: 'info',
  info: (details, message) => console.info(...consoleLine(details, message)),
}

/** Without a logger of the user, every line is shown. */
function loggerOf(receivers: readonly SignalledReceiver[]): Logger {
  const logger = receivers.find(({ setup }) => setup !== undefined)?.setup?.logger ?? consoleLogger
  return logger === defaultLogger || logger === consoleLogger ? verboseConsole : logger
}

/** Notes the acknowledged events that exist only in this process. */
const noting =
  (lost: LostEvent[]) =>
  (receiver: SignalledReceiver): ClosableReceiver => ({
    ...(receiver.inbox && { inbox: receiver.inbox }),
    async close(options) {
      const report = await receiver.close(options)
      const { ack, inbox } = receiver.setup ?? {}
      const isKept = inbox?.storage !== undefined && inbox.storage !== 'memory'
      if (!isKept && ack !== 'handled')
        for (const { event } of report.unfinished)
          lost.push({ key: event.key, type: event.type, mediaId: event.mediaId })
      return report
    },
  })

function late(): never {
  throw new Error('the receiver, or onClosed, has not ended in time')
}
