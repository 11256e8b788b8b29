type HandOver = () => void

const registry = Symbol.for('media-webhooks.sqliteInbox')

/** By file path. Global: after a hot reload the old module's receiver still has the file open. */
function openInboxes(): Map<string, HandOver> {
  const holder = globalThis as { [registry]?: Map<string, HandOver> }
  holder[registry] ??= new Map()
  return holder[registry]
}

export function takeFromThisProcess(path: string): void {
  openInboxes().get(path)?.()
}

export function rememberOpen(path: string, handOver: HandOver): () => void {
  const inboxes = openInboxes()
  inboxes.set(path, handOver)
  return () => {
    if (inboxes.get(path) === handOver) inboxes.delete(path)
  }
}
