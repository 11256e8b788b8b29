import type { DeadLetter } from '../../../index.ts'
import { type Flag, flagName, required, text, UsageError } from '../../shared/flags.ts'

/** The flag with the place of the inbox. A URL can contain a password, so a dash in its place reads it from standard input. */
export const targetFlag: Flag<string> & { readonly required: true } = required({
  ...text('<target>', 'a SQLite file, a postgres:// or postgresql:// URL, or a redis:// or rediss:// URL'),
  stdin: true,
})

/** The flags that name the inbox within its server. */
export const placeFlags = {
  schema: text('<name>', 'Postgres: the schema of the tables (default: media_webhooks)'),
  queue: text('<name>', 'Redis: the name of the queue (default: media-webhooks)'),
}

interface Place {
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
export function readTarget(address: string, { schema, queue }: Place): Target {
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

/** An inbox that the command has opened. */
export interface OpenedInbox {
  /** Counts the events. A file has no `running`: only the process that handles its events knows. */
  stats(): Promise<InboxCounts>
  /** Lists dead letters, newest first. */
  list(page: { readonly limit: number; readonly offset: number }): Promise<readonly DeadLetter[]>
  /** Lists the keys of all dead letters, oldest first. */
  keys(): Promise<readonly string[]>
  /** Replays dead letters, and returns the keys that one had. */
  replay(keys: readonly string[]): Promise<readonly string[]>
  /** Deletes dead letters, and returns the keys that one had. */
  discard(keys: readonly string[]): Promise<readonly string[]>
  close(): Promise<void>
}

export interface InboxCounts {
  readonly waiting: number
  readonly running?: number
  readonly retrying: number
  readonly deadLetters: number
}

// The packages are loaded only here: other commands need none of them, and each target only its own.

/** Opens an inbox to look into it. It makes no file, tables or queue. */
export async function openTarget({ kind, address, name }: Target): Promise<OpenedInbox> {
  if (kind === 'file') return openFile(address)
  if (kind === 'postgres') {
    const { openInboxDatabase } = await import('../../../inbox/postgres.ts')
    return overServer(await openInboxDatabase({ connection: address, ...(name !== undefined && { schema: name }) }))
  }
  const { openInboxQueue } = await import('../../../inbox/bullmq.ts')
  return overServer(await openInboxQueue({ connection: address, ...(name !== undefined && { queue: name }) }))
}

async function openFile(path: string): Promise<OpenedInbox> {
  const { openInboxFile } = await import('../../../inbox/sqlite.ts')
  const { stats, deadLetters, inOneCommit, close } = openInboxFile(path)
  const each = async (keys: readonly string[], act: (key: string) => boolean) => inOneCommit(() => keys.filter(act))
  return {
    stats: async () => stats(),
    list: async (page) => deadLetters.list(page),
    keys: async () => deadLetters.keys(),
    replay: (keys) => each(keys, deadLetters.replay),
    discard: (keys) => each(keys, deadLetters.discard),
    close: async () => close(),
  }
}

/** The inbox of a server, as the package opens it. */
interface InboxOnServer extends Pick<OpenedInbox, 'stats' | 'close'> {
  readonly deadLetters: {
    list(page: {
      readonly limit: number
      readonly offset: number
    }): readonly DeadLetter[] | Promise<readonly DeadLetter[]>
    keys(): Promise<readonly string[]>
    replayMany(keys: readonly string[]): Promise<readonly string[]>
    discardMany(keys: readonly string[]): Promise<readonly string[]>
  }
}

const overServer = ({ stats, deadLetters, close }: InboxOnServer): OpenedInbox => ({
  stats,
  list: async (page) => deadLetters.list(page),
  keys: () => deadLetters.keys(),
  replay: (keys) => deadLetters.replayMany(keys),
  discard: (keys) => deadLetters.discardMany(keys),
  close,
})
