import type { InspectedInbox } from '../../../inbox/reading.ts'
import { type Flag, flagName, required, text, UsageError } from '../../shared/flags.ts'

/** The flag with the place of the inbox. A URL can contain a password, so a dash reads it from standard input. */
export const targetFlag: Flag<string> & { readonly required: true } = required({
  ...text('<target>', 'a SQLite file, a postgres:// or postgresql:// URL, or a redis:// or rediss:// URL'),
  stdin: true,
})

/** The flags that name the inbox within its server. */
export const placeFlags = {
  schema: text('<name>', 'Postgres: the schema of the tables (default: media_webhooks)'),
  queue: text('<name>', 'Redis: the name of the queue (default: media-webhooks)'),
}

interface PlaceFlags {
  readonly schema: string | undefined
  readonly queue: string | undefined
}

/** The inbox that the command line names. */
export interface Target {
  readonly kind: 'file' | 'postgres' | 'redis'
  /** The path of the file or the URL of the server, which can contain a password. */
  readonly address: string
  /** The schema or the queue. `undefined`: the standard one. */
  readonly name: string | undefined
}

/** @throws UsageError without the target, because a URL can contain a password */
export function readTarget(address: string, { schema, queue }: PlaceFlags): Target {
  const kind = kindOf(address)
  if (schema !== undefined && kind !== 'postgres') throw new UsageError(`${flagName('schema')} is for Postgres only`)
  if (queue !== undefined && kind !== 'redis') throw new UsageError(`${flagName('queue')} is for Redis only`)
  return { kind, address, name: schema ?? queue }
}

function kindOf(address: string): Target['kind'] {
  if (/^postgres(ql)?:\/\//i.test(address)) return 'postgres'
  if (/^rediss?:\/\//i.test(address)) return 'redis'
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(address)) return 'file'
  throw new UsageError('<target> takes the path of a file, a postgres:// URL or a redis:// URL')
}

// The packages are loaded only here: other commands need none of them, and each target only its own.

/** Opens an inbox to read it. It makes no file, tables or queue. */
export async function openTarget({ kind, address, name }: Target): Promise<InspectedInbox> {
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
