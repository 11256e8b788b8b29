import type { InspectedInbox } from '../../../inbox/reading.ts'
import { type Flag, flagName, required, text, UsageError } from '../../shared/flags.ts'

/** Where the inbox is. A URL can contain a password, so `-` reads it from standard input. */
export const targetFlag: Flag<string> & { readonly required: true } = required({
  ...text('<target>', 'a SQLite file, a postgres:// or postgresql:// URL, or a redis:// or rediss:// URL'),
  stdin: true,
})

export const placeFlags = {
  schema: text('<name>', 'Postgres: the schema of the tables (default: media_webhooks)'),
  queue: text('<name>', 'Redis: the name of the queue (default: media-webhooks)'),
}

interface PlaceFlags {
  readonly schema: string | undefined
  readonly queue: string | undefined
}

export interface InboxTarget {
  readonly kind: 'file' | 'postgres' | 'redis'
  /** File path or server URL. The URL may contain a password. */
  readonly address: string
  /** Schema or queue. `undefined` for the default. */
  readonly name: string | undefined
}

/** @throws UsageError that does not quote the target, which may contain a password */
export function readTarget(address: string, { schema, queue }: PlaceFlags): InboxTarget {
  const kind = readKind(address)
  if (schema !== undefined && kind !== 'postgres') throw new UsageError(`${flagName('schema')} is for Postgres only`)
  if (queue !== undefined && kind !== 'redis') throw new UsageError(`${flagName('queue')} is for Redis only`)
  return { kind, address, name: schema ?? queue }
}

function readKind(address: string): InboxTarget['kind'] {
  if (/^postgres(ql)?:\/\//i.test(address)) return 'postgres'
  if (/^rediss?:\/\//i.test(address)) return 'redis'
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(address)) return 'file'
  throw new UsageError('<target> must be a file, a postgres:// URL or a redis:// URL')
}

// Lazy imports: each target needs only its own driver, other commands none.

/** Opens an inbox for reading. Never creates a file, tables or a queue. */
export async function openTarget({ kind, address, name }: InboxTarget): Promise<InspectedInbox> {
  if (kind === 'file') {
    const { openInboxFile } = await import('../../../inbox/sqlite.ts')
    return openInboxFile(address)
  }
  if (kind === 'postgres') {
    const { openInboxDatabase } = await import('../../../inbox/postgres.ts')
    return openInboxDatabase({ connection: address, ...(name !== undefined && { schema: name }) })
  }
  const { openInboxQueue } = await import('../../../inbox/bullmq.ts')
  return openInboxQueue({ connection: address, ...(name !== undefined && { queue: name }) })
}
