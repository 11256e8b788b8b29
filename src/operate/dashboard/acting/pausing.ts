import { WebhookError } from '../../../errors.ts'
import { knownHandlers } from '../../../inbox/operations/paused.ts'
import type { PageState } from '../page/page-state.ts'
import { reasonIn, record, store } from './record.ts'

/** Returns the handler that a form pauses, if nothing here knows that name: it may be mistyped. */
export async function unknownHandler({ subject: { inbox } }: PageState, form: URLSearchParams) {
  const handler = handlerIn(form)
  if (!handler || inbox.pauses === undefined) return undefined
  return (await knownHandlers(inbox)).includes(handler) ? undefined : handler
}

/** `undefined` is the whole inbox. An empty name must not mean that. */
const handlerIn = (form: URLSearchParams): string | undefined =>
  form.get('scope') === 'inbox' ? undefined : form.get('other')?.trim() || (form.get('handler') ?? '')

export async function setPause(page: PageState, form: URLSearchParams, act: 'pause' | 'resume'): Promise<string> {
  const { inbox } = page.subject
  if (inbox.pauses === undefined) throw new WebhookError('invalid_option', 'this inbox cannot be paused')
  const handler = handlerIn(form)
  const { user: by } = page
  const isDone = await (act === 'pause' ? inbox.pauses.pause({ handler, by }) : inbox.pauses.resume({ handler }))
  record(page, { action: act, handler, changed: isDone }, `${act} requested on the dashboard`)
  if (isDone) await store(page, { act, handler, reason: reasonIn(form) })
  const name = handler === undefined ? 'The inbox' : `The handler ${handler}`
  const note = form.has('confirmed') ? ' No known handler has this name.' : ''
  if (act === 'pause') return isDone ? `${name} is paused.${note}` : `${name} was already paused.`
  return isDone ? `${name} is resumed.` : `${name} was not paused.`
}
