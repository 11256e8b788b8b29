import { expect, onTestFinished, vi } from 'vitest'
import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { createReceiver, type InboxDefinition, type MediaEvent, type RetryOptions, urlToken } from '../../src/index.ts'
import { deliver, samplePayload } from '../../src/testing/index.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { until } from '../support/inbox.ts'
import { silent } from '../support/silent.ts'
import { future } from '../support/unreadable.ts'
import { finish } from './program.ts'

/** An inbox of its own. */
export interface InboxPlace {
  /** The file, or the URL of the server. */
  readonly target: string
  /** The flags that name the inbox on it. */
  readonly flags: readonly string[]
  readonly inbox: () => InboxDefinition
}

export const secret = 'url-token-4b81'
const url = `/webhooks/media?token=${secret}`
const payload = (mediaId: string) => JSON.stringify(samplePayload('encoding.finished', { media_id: mediaId }))

const twice: RetryOptions = { attempts: 2, baseMs: 1 }

/** Starts a receiver whose only handler fails until `fix()` is called. The key of an event is its media id. */
export async function serve({ target, flags, inbox: definition }: InboxPlace, retry: RetryOptions = twice) {
  const receiver = createReceiver({
    verify: urlToken({ secret }),
    inbox: definition(),
    logger: silent,
    eventKey: ({ mediaId }) => mediaId,
    retry,
  })
  onTestFinished(async () => void (await receiver.close({ timeoutMs: 1_000 })))
  let isFixed = false
  const handled: string[] = []
  const publish = ({ mediaId }: MediaEvent) => {
    if (!isFixed) throw new Error('no room\nfor \u001b[31mit')
    handled.push(mediaId)
  }
  receiver.onAny(publish, { name: 'publish' })
  await receiver.ready()
  const deadLetters = async () => (await receiver.inbox.stats()).deadLetters
  const inbox = (...args: string[]) => finish(['inbox', target, ...args, ...flags])
  return {
    receiver,
    handled,
    deadLetters,
    fix() {
      isFixed = true
    },
    /** Sends events one by one, and waits until each is a dead letter. */
    async makeDeadLetter(...keys: string[]) {
      for (const key of keys) {
        const before = await deadLetters()
        expect(await deliver(receiver, payload(key), { url })).toMatchObject({ status: 200 })
        await until(async () => (await deadLetters()) === before + 1)
      }
    },
    /** Sends all events together, and waits until all are dead letters. */
    async buryMany(keys: readonly string[]) {
      await Promise.all(keys.map((key) => deliver(receiver, payload(key), { url })))
      await vi.waitUntil(async () => (await deadLetters()) === keys.length)
    },
    /** Sends an event. */
    send: (type: Parameters<typeof samplePayload>[0], fields: Parameters<typeof samplePayload>[1]) =>
      deliver(receiver, samplePayload(type, fields), { url }),
    /** Sends a delivery that this version cannot parse. */
    sendUnreadable: (body: string | Uint8Array<ArrayBuffer> = future) => deliver(receiver, body, { url }),
    /** Waits until the command sees that an event waits for its next attempt: the receiver knows it a moment earlier. */
    async seenRetrying(key: string) {
      await until(async () => {
        const { code, output } = await inbox('show', key, '--json')
        return code === 0 && JSON.parse(output).state === 'retrying'
      })
    },
    inbox,
  }
}

/** Serves an inbox in a file of its own. */
export async function serveFile(retry?: RetryOptions) {
  const path = await freshPath()
  return { path, ...(await serve({ target: path, flags: [], inbox: () => sqliteInbox({ path }) }, retry)) }
}

/** Expects that the command fails with one line that matches, and prints no part of the secret. */
export async function expectFailure(args: readonly string[], why: RegExp, kept = 'no secret', code = 1) {
  const result = await finish(['inbox', ...args])
  expect(result).toMatchObject({ code, output: '' })
  expect(result.errors).toMatch(why)
  expect(result.errors).toMatch(/^media-webhooks: [^\n]+\n$/)
  expect(result.errors).not.toContain(kept)
}
