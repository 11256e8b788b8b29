import { createReceiver, type Handlers, type Receiver, urlToken } from 'media-webhooks'
import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
import { env } from '$env/dynamic/private'
import { handlers } from './handlers'

// A hot reload evaluates this module again in the same process. The process keeps
// its receiver, with its open inbox, which calls the newest handlers.
const kept = globalThis as { mediaReceiver?: Receiver; mediaHandlers?: Handlers }
kept.mediaHandlers = handlers

function makeReceiver(): Receiver {
  const receiver = createReceiver({
    verify: urlToken({ secret: env.WEBHOOK_TOKEN ?? '' }),
    inbox: sqliteInbox({ path: env.INBOX_PATH ?? 'inbox.db' }),
  })
  for (const type of Object.keys(handlers) as (keyof Handlers)[]) {
    receiver.on(type, (event, context) => kept.mediaHandlers?.[type]?.(event as never, context), { name: type })
  }
  return receiver
}

/** Returns this process's receiver, made at the first call. */
export function receiver(): Receiver {
  kept.mediaReceiver ??= makeReceiver()
  return kept.mediaReceiver
}
