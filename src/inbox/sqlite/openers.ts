type HandOver = () => void

const registry = Symbol.for('media-webhooks.sqliteInbox')

/**
 * Inboxes of this process, by file path. Global, because a hot reload evaluates this module again while the old code's
 * receiver has the file open.
 */
function openInboxes(): Map<string, HandOver> {
  const holder = globalThis as { [registry]?: Map<string, HandOver> }
  holder[registry] ??= new Map()
  return holder[registry]
}

export function takeFromThisProcess(path: string): void {
  openInboxes().get(path)?.()
}

/** Returns a function that forgets the entry. */
export function rememberOpen(path: string, handOver: HandOver): () => void {
  const inboxes = openInboxes()
  inboxes.set(path, handOver)
  return () => {
    if (inboxes.get(path) === handOver) inboxes.delete(path)
  }
}
