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

/** Finds the keys of the newest events that have a short id. An event whose key is `given` is the only one. */
export async function keysWithId(inbox: ReadableInbox, given: string): Promise<readonly string[]> {
  if (!/^[0-9a-f]{8}$/.test(given)) return []
  const known = (await inbox.events?.get(given)) ?? (await inbox.deadLetters.get(given))
  if (known !== undefined) return [given]
  const keys = [...new Set((await newest(inbox)).map(({ key }) => key))]
  const ids = await Promise.all(keys.map(shortId))
  return keys.filter((_, index) => ids[index] === given)
}

export async function mediaBeginning(inbox: ReadableInbox, beginning: string): Promise<readonly string[]> {
  const ids = (await newest(inbox)).flatMap(({ mediaId }) => (mediaId?.startsWith(beginning) ? [mediaId] : []))
  return [...new Set(ids)].sort()
}
