import { keysWithId, mediaBeginning } from '../../../inbox/operations/finding.ts'
import { headed } from '../access/respond.ts'
import { storyOfMedia } from '../reading/story.ts'
import type { PageState } from './page-state.ts'

/**
 * Redirects to the event with the typed key or short id, or else to the media item whose id starts with it. Lists the
 * events if several have the short id.
 */
export async function find({ subject: { inbox }, query, at }: PageState): Promise<Response> {
  const typed = query.get('q')?.trim() ?? ''
  if (typed === '') return to(at(''))
  const keys = await keysWithId(inbox, typed)
  if (keys.length > 1) return to(at('media', { id: typed }))
  const [key = typed] = keys
  if (((await inbox.events?.get(key)) ?? (await inbox.deadLetters.get(key))) !== undefined)
    return to(at('event', { key }))
  const matches = (await storyOfMedia(inbox, typed)).length > 0 ? [] : await mediaBeginning(inbox, typed)
  return to(at('media', { id: matches.length === 1 ? (matches[0] as string) : typed }))
}

const to = (location: string) => new Response(null, { status: 303, headers: headed({ location }) })
