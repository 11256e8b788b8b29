import { createReceiver, type Receiver, urlToken } from 'media-webhooks'
import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
import { handlers } from './handlers'

let made: Receiver | undefined

/** Returns the receiver of this process. It is made at the first call. */
export function mediaReceiver(): Receiver {
  const { WEBHOOK_TOKEN = '', INBOX_PATH = 'inbox.db' } = process.env
  made ??= createReceiver({
    verify: urlToken({ secret: WEBHOOK_TOKEN }),
    inbox: sqliteInbox({ path: INBOX_PATH }),
    handlers,
  })
  return made
}
