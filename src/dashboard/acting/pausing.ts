import { WebhookError } from '../../errors.ts'
import { knownHandlers } from '../../inbox/operations/paused.ts'
import type { PageState } from '../page/page-state.ts'
import { reasonIn, record, store } from './record.ts'

/** Returns the handler that a form pauses if no process, event or dead letter is known to name it. */
export async function unknownHandler({ subject: { inbox } }: PageState, form: URLSearchParams) {
  const handler = handlerIn(form)
  if (!handler || inbox.pauses === undefined) return undefined
  return (await knownHandlers(inbox)).includes(handler) ? undefined : handler
}

/** `undefined` for the whole inbox. Without a name, the form of a handler must not pause the inbox. */
const handlerIn = (form: URLSearchParams): string | undefined =>
  form.get('scope') === 'inbox' ? undefined : form.get('other')?.trim() || (form.get('handler') ?? '')

/** Pauses or resumes the inbox, or the handler that the form names. Returns the result as a sentence. */
export async function setPause(page: PageState, form: URLSearchParams, act: 'pause' | 'resume'): Promise<string> {
  const { inbox } = page.subject
  if (inbox.pauses === undefined) throw new WebhookError('invalid_option', 'this inbox cannot be paused')
  const handler = handlerIn(form)
  const { user: by } = page
  const isDone = await (act === 'pause' ? inbox.pauses.pause({ handler, by }) : inbox.pauses.resume({ handler }))
  record(page, { action: act, handler, changed: isDone }, `${act} was asked for on the dashboard`)
  if (isDone) await store(page, { act, handler, reason: reasonIn(form) })
  const name = handler === undefined ? 'The inbox' : `The handler ${handler}`
  const note = form.has('confirmed') ? ' No handler of that name is known here.' : ''
  if (act === 'pause') return isDone ? `${name} is paused.${note}` : `${name} was paused already.`
  return isDone ? `${name} is resumed.` : `${name} was not paused.`
}
