import { createReceiver, type Handlers, type Receiver, urlToken } from 'media-webhooks'
import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
import { handlers } from './handlers.ts'

// A hot reload evaluates this module again, as under `bun --hot`. The process keeps
// its receiver, with its open inbox, which calls the newest handlers.
const kept = globalThis as { mediaReceiver?: Receiver; mediaHandlers?: Handlers }
kept.mediaHandlers = handlers

function makeReceiver(): Receiver {
  const { WEBHOOK_TOKEN = '', INBOX_PATH = 'inbox.db' } = process.env
  const receiver = createReceiver({
    verify: urlToken({ secret: WEBHOOK_TOKEN }),
    inbox: sqliteInbox({ path: INBOX_PATH }),
  })
  for (const type of Object.keys(handlers) as (keyof Handlers)[]) {
    receiver.on(type, (event, context) => kept.mediaHandlers?.[type]?.(event as never, context), { name: type })
  }
  return receiver
}

kept.mediaReceiver ??= makeReceiver()
export const receiver = kept.mediaReceiver
