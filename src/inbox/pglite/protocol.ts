// The part of Postgres' protocol 3.0 that a link needs: see "Message Formats" in the Postgres docs.

/** Finds the end of the first messages answered together: a query, or all up to a Sync or a Flush. */
export function endOfBatch(messages: Buffer): number | undefined {
  for (let at = 0; at + 5 <= messages.length; ) {
    const type = String.fromCharCode(messages[at] as number)
    at += 1 + messages.readInt32BE(at + 1)
    if (at > messages.length) return undefined
    if (type === 'Q' || type === 'S' || type === 'H') return at
  }
  return undefined
}

/** True if an answer ends with ReadyForQuery, outside a transaction. */
export const isIdle = (answer: Uint8Array): boolean => ready.equals(answer.subarray(-ready.length))

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const setting = (name: string, value: string) => message('S', Buffer.from(`${name}\0${value}\0`))

const ready = message('Z', Buffer.from('I'))
export const sync = message('S', Buffer.alloc(0))
export const rollback = message('Q', Buffer.from('ROLLBACK\0'))

/** Greeting of a server that asks for no password. */
export const welcome = Buffer.concat([
  message('R', Buffer.alloc(4)),
  setting('client_encoding', 'UTF8'),
  setting('standard_conforming_strings', 'on'),
  message('K', Buffer.alloc(8)),
  ready,
])
