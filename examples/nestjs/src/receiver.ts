import { createReceiver, type Receiver, urlToken } from 'media-webhooks'
import { sqliteInbox } from 'media-webhooks/inbox/sqlite'
import { handlers } from './handlers'

/** The token of the receiver among Nest's providers. */
export const RECEIVER = Symbol('RECEIVER')

export async function makeReceiver(): Promise<Receiver> {
  const { WEBHOOK_TOKEN = '', INBOX_PATH = 'inbox.db' } = process.env
  const inbox = sqliteInbox({ path: INBOX_PATH })
  const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }), inbox, handlers })
  await receiver.ready()
  return receiver
}
