import type { ReadableInbox } from '../reading.ts'
import { shortId } from './operations.ts'

/** Number of events of each state, and of dead letters, that are searched: the newest. */
const searchLimit = 1_000

interface Named {
  readonly key: string
  readonly mediaId: string | undefined
}

/** Names the newest events of an inbox. An event can come twice. */
async function newest({ events, deadLetters }: ReadableInbox): Promise<readonly Named[]> {
  const dead = await deadLetters.list({ limit: searchLimit })
  const pages = (events?.states ?? []).map(async (state) => (await events?.list({ state, limit: searchLimit }))?.events)
  const listed = (await Promise.all(pages)).flatMap((page) => page ?? [])
  return [...listed, ...dead.map(({ key, event }) => ({ key, mediaId: event?.mediaId }))]
}

/** Returns the key of the event with a short id, or what was given if it is none, or belongs to no event that is searched. */
export async function keyOf(inbox: ReadableInbox, given: string): Promise<string> {
  if (!/^[0-9a-f]{8}$/.test(given)) return given
  const known = (await inbox.events?.get(given)) ?? (await inbox.deadLetters.get(given))
  if (known !== undefined) return given
  for (const { key } of await newest(inbox)) if ((await shortId(key)) === given) return key
  return given
}

/** Lists the media items whose id begins with a text. */
export async function mediaBeginning(inbox: ReadableInbox, beginning: string): Promise<readonly string[]> {
  const ids = (await newest(inbox)).flatMap(({ mediaId }) => (mediaId?.startsWith(beginning) ? [mediaId] : []))
  return [...new Set(ids)].sort()
}
