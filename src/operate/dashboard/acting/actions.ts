import { headed } from '../access/respond.ts'
import type { Answer, PageState } from '../page/page-state.ts'
import { questionBefore, questionOfPause } from '../page/question.tsx'
import { setPause, unknownHandler } from './pausing.ts'
import { makeAddress, placeIn } from './place.ts'
import { reasonIn, record, store } from './record.ts'
import { describeResult } from './result.ts'
import { type Act, readSelection } from './selection.ts'

type Action = (page: PageState, form: URLSearchParams) => Answer | Response | Promise<Answer | Response>

/** How long a form waits for its action (ms) before it redirects to the progress page. */
const waitMs = 1_000

export const postRoutes: ReadonlyMap<string, Action> = new Map<string, Action>([
  ['replay', (page, form) => act(page, form, 'replay')],
  // Asks first: a discard can't be undone.
  ['discard', (page, form) => (form.has('confirmed') ? act(page, form, 'discard') : questionBefore(page, form))],
  ['retry', (page, form) => act(page, form, 'retry')],
  ['stop-handler', (page, form) => act(page, form, 'stop-handler')],
  ['stop', stop],
  [
    'pause',
    async (page, form) => {
      const unknown = form.has('confirmed') ? undefined : await unknownHandler(page, form)
      return unknown === undefined ? pause(page, form, 'pause') : questionOfPause(page, form, unknown)
    },
  ],
  ['resume', (page, form) => pause(page, form, 'resume')],
])

async function act(page: PageState, form: URLSearchParams, chosen: Act): Promise<Response> {
  const { bulkActions, notices } = page.subject
  const selection = readSelection(form)
  const back = placeIn(form)
  if (selection.scope === 'keys' && selection.keys.length === 0)
    return to(page, back, { notice: notices.leave({ text: 'Nothing was selected.', failed: true }) })
  const { action, ended } = bulkActions.start(chosen, selection)
  const logged = { bulkAction: action.id, action: chosen }
  record(page, { ...logged, selection }, `${chosen} requested on the dashboard`)
  const stored = ended.then(() => {
    const { state, total, done: count, keys } = action
    record(page, { ...logged, state, total, done: count }, `${chosen} finished on the dashboard`)
    const cause = selection.scope === 'found' ? selection.filter.cause : undefined
    const act = chosen === 'stop-handler' ? 'stop' : chosen
    if (count > 0)
      return store(page, {
        at: action.startedAt,
        act,
        keys,
        count,
        cause,
        reason: reasonIn(form),
        bulkAction: action.id,
      })
  })
  await Promise.race([stored, new Promise((resolve) => setTimeout(resolve, waitMs))])
  if (action.state === 'running') return to(page, 'bulk-action', { id: action.id })
  if (action.state === 'failed') throw action.error
  const isPartial = action.done < (action.total ?? 0)
  const hasMore = action.replayed !== undefined && action.done > 0
  const more = hasMore ? { text: 'See how it went', address: page.at('bulk-action', { id: action.id }) } : undefined
  return to(page, back, { notice: notices.leave({ text: describeResult(action).join(' '), failed: isPartial, more }) })
}

function stop(page: PageState, form: URLSearchParams): Response {
  const id = form.get('id') ?? ''
  page.subject.bulkActions.stop(id)
  record(page, { bulkAction: id, action: 'stop' }, 'stop requested on the dashboard')
  return to(page, 'bulk-action', { id })
}

async function pause(page: PageState, form: URLSearchParams, what: 'pause' | 'resume'): Promise<Response> {
  const text = await setPause(page, form, what)
  return to(page, placeIn(form), { notice: page.subject.notices.leave({ text }) })
}

const to = (page: PageState, place: string, query: Readonly<Record<string, string>>): Response =>
  new Response(null, { status: 303, headers: headed({ location: makeAddress(page, place, query) }) })
