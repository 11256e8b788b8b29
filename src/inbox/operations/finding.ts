import type { ReadableInbox } from '../reading.ts'
import { shortId } from './operations.ts'

/** Newest events searched per state, and newest dead letters. */
const searchLimit = 1_000

interface Named {
  readonly key: string
  readonly mediaId: string | undefined
}

/** Lists the newest events. Some may appear twice. */
async function newest({ events, deadLetters }: ReadableInbox): Promise<readonly Named[]> {
  const dead = await deadLetters.list({ limit: searchLimit })
  const pages = (events?.states ?? []).map(async (state) => (await events?.list({ state, limit: searchLimit }))?.events)
  const listed = (await Promise.all(pages)).flatMap((page) => page ?? [])
  return [...listed, ...dead.map(({ key, event }) => ({ key, mediaId: event?.mediaId }))]
}

/** Resolves a short id to its key. Returns anything else unchanged, and ids of older events too. */
export async function findKey(inbox: ReadableInbox, given: string): Promise<string> {
  if (!/^[0-9a-f]{8}$/.test(given)) return given
  const known = (await inbox.events?.get(given)) ?? (await inbox.deadLetters.get(given))
  if (known !== undefined) return given
  for (const { key } of await newest(inbox)) if ((await shortId(key)) === given) return key
  return given
}

export async function mediaBeginning(inbox: ReadableInbox, beginning: string): Promise<readonly string[]> {
  const ids = (await newest(inbox)).flatMap(({ mediaId }) => (mediaId?.startsWith(beginning) ? [mediaId] : []))
  return [...new Set(ids)].sort()
}
