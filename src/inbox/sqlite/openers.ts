/** Makes an inbox give up its file. */
type HandOver = () => void

const registry = Symbol.for('media-webhooks.sqliteInbox')

/**
 * The inboxes of this process by the path of their file. A hot reload evaluates this module again while the receiver of the
 * earlier code has the file open, so they are kept where both find them.
 */
function openInboxes(): Map<string, HandOver> {
  const holder = globalThis as { [registry]?: Map<string, HandOver> }
  holder[registry] ??= new Map()
  return holder[registry]
}

/** Takes a file from the inbox of this process that has it open. */
export function takeFromThisProcess(path: string): void {
  openInboxes().get(path)?.()
}

/** Remembers that an inbox has a file open. The returned function forgets that. */
export function rememberOpen(path: string, handOver: HandOver): () => void {
  const inboxes = openInboxes()
  inboxes.set(path, handOver)
  return () => {
    if (inboxes.get(path) === handOver) inboxes.delete(path)
  }
}
