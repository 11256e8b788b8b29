import { createReceiver, type Receiver, urlToken } from 'media-webhooks'
import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
import { handlers } from './handlers'

function makeReceiver(): Receiver {
  const { WEBHOOK_TOKEN = '', INBOX_PATH = 'inbox.db' } = process.env
  const inbox = sqliteInbox({ path: INBOX_PATH })
  return createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }), inbox, handlers })
}

// Next.js loads this module more than once: for the route, for instrumentation.ts, and after a change in development.
const holder = globalThis as { mediaReceiver?: Receiver }

/** Returns the receiver of this process. It is made at the first call. */
export function receiver(): Receiver {
  holder.mediaReceiver ??= makeReceiver()
  return holder.mediaReceiver
}
