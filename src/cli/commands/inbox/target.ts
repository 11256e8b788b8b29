import type { ActivityMinute, DeadLetters, EventRecord, InboxEvents, ReadableInbox } from '../../../inbox/reading.ts'
import type { MaybePromise } from '../../../internal/maybe-promise.ts'
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
export interface OpenedInbox extends ReadableInbox {
  readonly events: InboxEvents
  history(mediaId: string): MaybePromise<readonly EventRecord[]>
  activity(since: Date): MaybePromise<readonly ActivityMinute[]>
  /** Lists the keys of all dead letters, oldest first. */
  keys(): MaybePromise<readonly string[]>
  /** Replays dead letters, and returns the keys that one had. */
  replayMany(keys: readonly string[]): MaybePromise<readonly string[]>
  /** Deletes dead letters, and returns the keys that one had. */
  discardMany(keys: readonly string[]): MaybePromise<readonly string[]>
  close(): MaybePromise<void>
}

// The packages are loaded only here: other commands need none of them, and each target only its own.

/** Opens an inbox to read it. It makes no file, tables or queue. */
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
  const { inOneCommit, ...file } = openInboxFile(path)
  const { keys, replay, discard } = file.deadLetters
  return {
    ...file,
    keys,
    replayMany: (keys) => inOneCommit(() => keys.filter((key) => replay(key))),
    discardMany: (keys) => inOneCommit(() => keys.filter((key) => discard(key))),
  }
}

/** The inbox of a server, as the package opens it. */
interface InboxOnServer
  extends Pick<OpenedInbox, 'stats' | 'events' | 'history' | 'expected' | 'activity' | 'pauses' | 'close'> {
  readonly deadLetters: DeadLetters & Pick<OpenedInbox, 'keys' | 'replayMany' | 'discardMany'>
}

const overServer = ({ deadLetters, ...inbox }: InboxOnServer): OpenedInbox => ({
  ...inbox,
  deadLetters,
  keys: () => deadLetters.keys(),
  replayMany: (keys) => deadLetters.replayMany(keys),
  discardMany: (keys) => deadLetters.discardMany(keys),
})
