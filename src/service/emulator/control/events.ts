import { setTimeout as sleep } from 'node:timers/promises'
import type { Handler } from 'hono'
import { streamSSE } from 'hono/streaming'
import type { Change, Changes } from '../shared/changes.ts'

/** Minimum time between messages (ms). */
const tickMs = 200
/** Ticks without a message before a comment is sent to keep the connection alive. */
const heartbeatTicks = 75

/**
 * Streams changes as server-sent events: `data: ["media","sendings"]`. A message only names the kinds that changed, so
 * its size is bounded. The reader fetches the current state.
 * @param closing ends every stream
 */
export function changeStream(changes: Changes, closing: AbortSignal): Handler {
  return (context) => {
    // A HEAD request's stream would never be read, and so never closed.
    if (context.req.method === 'HEAD') return context.body(null, 200, { 'Content-Type': 'text/event-stream' })
    return streamSSE(context, async (stream) => {
      const disconnected = new AbortController()
      stream.onAbort(() => disconnected.abort())
      const ended = AbortSignal.any([disconnected.signal, closing])
      const changed = new Set<Change['kind']>()
      const unsubscribe = changes.subscribe(({ kind }) => changed.add(kind))
      await stream.write(': open\n\n')
      for (let idleTicks = 0; !ended.aborted; idleTicks++) {
        if (changed.size > 0) {
          const data = JSON.stringify([...changed])
          changed.clear()
          idleTicks = 0
          // Resolves once the reader has taken it. A slow reader gets the changes in between as one message.
          await stream.writeSSE({ data })
        } else if (idleTicks >= heartbeatTicks) {
          idleTicks = 0
          await stream.write(': still here\n\n')
        }
        await sleep(tickMs, undefined, { signal: ended }).catch(() => {})
      }
      unsubscribe()
    })
  }
}
