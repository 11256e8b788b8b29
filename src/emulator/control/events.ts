import { setTimeout as pause } from 'node:timers/promises'
import type { Handler } from 'hono'
import { streamSSE } from 'hono/streaming'
import type { Change, Changes } from '../shared/changes.ts'

/** Between two messages, in ms, however much changes. */
const pauseMs = 200
/** After so many pauses without a message a comment is sent, lest the connection is taken for dead. */
const heartbeatPauses = 75

/**
 * Streams what changes as server-sent events: `data: ["media","sendings"]`. A message says which kinds of things are no
 * longer as they were, so it is small however many of them changed; who wants to know what they are now, asks.
 * @param closing ends every stream
 */
export function changeStream(changes: Changes, closing: AbortSignal): Handler {
  return (context) => {
    // Its stream would never be read, nor ever be left.
    if (context.req.method === 'HEAD') return context.body(null, 200, { 'Content-Type': 'text/event-stream' })
    return streamSSE(context, async (stream) => {
      const left = new AbortController()
      stream.onAbort(() => left.abort())
      const over = AbortSignal.any([left.signal, closing])
      const changed = new Set<Change['kind']>()
      const unsubscribe = changes.subscribe(({ kind }) => changed.add(kind))
      await stream.write(': open\n\n')
      for (let quiet = 0; !over.aborted; quiet++) {
        if (changed.size > 0) {
          const data = JSON.stringify([...changed])
          changed.clear()
          quiet = 0
          // Resolves when it is taken: for a reader that is slow, whatever changes meanwhile is one message too.
          await stream.writeSSE({ data })
        } else if (quiet >= heartbeatPauses) {
          quiet = 0
          await stream.write(': still here\n\n')
        }
        await pause(pauseMs, undefined, { signal: over }).catch(() => {})
      }
      unsubscribe()
    })
  }
}
