import { WebhookError } from '../../errors.ts'
import type { PageState } from '../page/page-state.ts'
import { reasonIn, record, store } from './record.ts'

/** Pauses or resumes the inbox, or the handler that the form names. Returns the result as a sentence. */
export async function setPause(page: PageState, form: URLSearchParams, act: 'pause' | 'resume'): Promise<string> {
  const { inbox } = page.subject
  if (inbox.pauses === undefined) throw new WebhookError('invalid_option', 'this inbox cannot be paused')
  // Without a name, the form of a handler must not pause the whole inbox.
  const handler = form.get('scope') === 'inbox' ? undefined : (form.get('handler') ?? '')
  const { user: by } = page
  const isDone = await (act === 'pause' ? inbox.pauses.pause({ handler, by }) : inbox.pauses.resume({ handler }))
  record(page, { action: act, handler, changed: isDone }, `${act} was asked for on the dashboard`)
  if (isDone) await store(page, { act, handler, reason: reasonIn(form) })
  const name = handler === undefined ? 'The inbox' : `The handler ${handler}`
  if (act === 'pause') return isDone ? `${name} is paused.` : `${name} was paused already.`
  return isDone ? `${name} is resumed.` : `${name} was not paused.`
}
