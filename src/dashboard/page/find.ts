import { headed } from '../access/respond.ts'
import type { PageState } from './page-state.ts'

/** Leads to the event with the key that was typed, or else to the media item with that id. */
export async function find({ subject: { inbox }, query, at }: PageState): Promise<Response> {
  const typed = query.get('q')?.trim() ?? ''
  if (typed === '') return to(at(''))
  const known = (await inbox.events?.get(typed)) ?? (await inbox.deadLetters.get(typed))
  return to(known === undefined ? at('media', { id: typed }) : at('event', { key: typed }))
}

const to = (location: string) => new Response(null, { status: 303, headers: headed({ location }) })
