import { createReceiver, urlToken } from 'media-webhooks'
import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
import { handlers } from './handlers.ts'

const { WEBHOOK_TOKEN = '', INBOX_PATH = 'inbox.db' } = process.env

export const receiver = createReceiver({
  verify: urlToken({ secret: WEBHOOK_TOKEN }),
  inbox: sqliteInbox({ path: INBOX_PATH }),
  handlers,
})
