import { lruStore } from '../../../src/idempotency/lru.ts'
import type { Inbox, InboxDefinition } from '../../../src/inbox/inbox.ts'
import { queueInbox } from '../../../src/inbox/queue.ts'

/** A queue inbox whose queue delivers to itself, as JSON text, and counts. */
export function loopedInbox() {
  let inbox: Inbox
  let isOver = false
  const deliver = async (text: string, attempt: number) => {
    if (isOver) return
    const result = await inbox.handleMessage?.(text, { attempt })
    if (result?.status === 'retry') setTimeout(deliver, result.delayMs, text, attempt + 1)
  }
  const send = async (message: unknown) => void setTimeout(deliver, 0, JSON.stringify(message), 1)
  const definition = queueInbox({ send, store: lruStore() })
  const looped: InboxDefinition = {
    ...definition,
    open(host) {
      inbox = definition.open(host)
      return inbox
    },
  }
  const close = () => {
    isOver = true
  }
  return { inbox: looped, close }
}
