import { createReceiver, type Receiver, urlToken } from 'media-webhooks'
import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
import { env } from '$env/dynamic/private'
import { handlers } from './handlers'

let made: Receiver | undefined

/** Returns the receiver of this process. It is made at the first call. */
export function receiver(): Receiver {
  made ??= createReceiver({
    verify: urlToken({ secret: env.WEBHOOK_TOKEN ?? '' }),
    inbox: sqliteInbox({ path: env.INBOX_PATH ?? 'inbox.db' }),
    handlers,
  })
  return made
}
