import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bullmqInbox } from '../../../src/inbox/bullmq.ts'
import { postgresInbox } from '../../../src/inbox/postgres.ts'
import { sqliteInbox } from '../../../src/inbox/sqlite.ts'
import {
  anyOf,
  basicAuth,
  createReceiver,
  headerToken,
  hmacSignature,
  publicKeySignature,
  type Receiver,
  type ReceiverOptions,
  snsSignature,
  standardWebhooks,
  timestampedSignature,
  unverified,
  urlToken,
} from '../../../src/index.ts'
import { PostgresServer } from '../../support/postgres/postgres-server.ts'
import { RedisServer } from '../../support/redis/redis-server.ts'
import { silent } from '../../support/silent.ts'

/** Longer than a busy machine holds up a server, in ms: a body has to be answered, however slow that is. */
const timeoutMs = 60_000

/** A receiver that gets fuzzed deliveries, and counts. */
export interface FuzzedReceiver {
  readonly name: string
  readonly receiver: Receiver
  /** Its share of the deliveries, added to the shares before it. */
  readonly upTo: number
  accepted: number
  handled: number
}

const signed = anyOf(
  hmacSignature({ secret: 'a shared secret', header: 'x-signature', timestamp: { header: 'x-timestamp' } }),
  publicKeySignature({
    publicKey: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    header: 'x-signature-ed25519',
  }),
  snsSignature({
    topicArn: 'arn:aws:sns:us-east-1:123456789012:media',
    fetch: () => Promise.reject(new Error('offline')),
  }),
  standardWebhooks({ secret: 'whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQh' }),
  timestampedSignature({ secret: 'a signing secret', header: 'mux-signature' }),
  basicAuth({ username: 'user', password: 'a password' }),
  headerToken({ secret: 'a token', header: 'x-token' }),
  urlToken({ secret: 'a token' }),
)

/**
 * Opens receivers with every verifier and over every inbox. The durable ones, which cost more, get a hundredth of the
 * deliveries each.
 */
export async function openReceivers() {
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-fuzz-'))
  const [redis, postgres] = await Promise.all([RedisServer.start(), PostgresServer.start()])
  const durable = {
    sqlite: sqliteInbox({ path: join(folder, 'inbox.db') }),
    bullmq: bullmqInbox({ connection: redis.url, timeoutMs }),
    postgres: postgresInbox({ connection: postgres.url, timeoutMs }),
  }
  const receivers = [
    open('memory', 0.82, {}),
    open('keys from a header', 0.92, { eventKey: { header: 'x-event-id' } }),
    open('signed', 0.97, { verify: signed }),
    open('sqlite', 0.98, { inbox: durable.sqlite }),
    open('bullmq', 0.99, { inbox: durable.bullmq }),
    open('postgres', 1, { inbox: durable.postgres }),
  ]
  const close = async () => {
    await Promise.all(receivers.map(({ receiver }) => receiver.close()))
    await Promise.all([redis.remove(), postgres.remove(), rm(folder, { recursive: true })])
  }
  await Promise.all(receivers.map(({ receiver }) => receiver.ready()))
  return { receivers, close }
}

function open(name: string, upTo: number, options: Partial<ReceiverOptions>): FuzzedReceiver {
  const receiver = createReceiver({ verify: unverified(), logger: silent, ...options })
  const fuzzed = { name, receiver, upTo, accepted: 0, handled: 0 }
  receiver.onAny(() => void fuzzed.handled++)
  return fuzzed
}
