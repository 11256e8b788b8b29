import { html } from 'hono/html'
import { sha256 } from '#crypto'
import { WebhookError } from '../../errors.ts'
import type { Pause } from '../../inbox/reading.ts'
import { throttled } from '../../internal/logger.ts'
import { within } from '../../internal/timers.ts'
import type { Access, Reader } from './access/access.ts'
import { readForm } from './access/form.ts'
import { headed, plain } from './access/respond.ts'
import { postRoutes } from './acting/actions.ts'
import { assets } from './page/assets.ts'
import { Document } from './page/document.tsx'
import { failure, notFound } from './page/messages.tsx'
import { type Answer, makePageState, type PageState } from './page/page-state.ts'
import { getRoutes } from './page/routes.tsx'
import type { Subject } from './subject.ts'

/** Time limit for reading the inbox (ms). */
const inboxTimeoutMs = 10_000

/** Creates the request handler: checks access, then routes to a page, an action or an asset. */
export function createApp(subject: Subject, path: string, access: Access) {
  let isReachable = true

  async function show(page: PageState, answer: () => Promise<Answer | Response>): Promise<Response> {
    try {
      const late = () =>
        Promise.reject(new WebhookError('timeout', `the inbox did not answer within ${inboxTimeoutMs} ms`))
      const read = async () => {
        const answered = await answer()
        if (answered instanceof Response) return answered
        const { missing } = subject.inbox.expected ? await page.overdue() : { missing: 0 }
        return document(page, answered, await page.pauses(), missing)
      }
      const shown = await within(inboxTimeoutMs, read(), late)
      isReachable = true
      return shown
    } catch (error) {
      const status = statusOf(error)
      // Log once per outage: open pages keep polling.
      if (status === 503 && isReachable) subject.logger.error({ err: error }, 'the dashboard cannot read the inbox')
      if (status === 503) isReachable = false
      if (isFault(error)) throttled(subject.logger).error({ err: error }, 'the dashboard has a fault')
      return document(page, failure(page, error, status))
    }
  }

  function route(request: Request, reader: Reader): Response | Promise<Response> {
    const page = makePageState(subject, path, new URL(request.url), reader)
    const { route: name } = page
    const [asset, get, post] = [assets.get(name), getRoutes.get(name), postRoutes.get(name)]
    if (asset === undefined && get === undefined && post === undefined) return document(page, notFound(page))
    const isGet = request.method === 'GET' || request.method === 'HEAD'
    if (request.method === 'POST' && post) return show(page, async () => post(page, await readForm(request)))
    if (isGet && get) return show(page, async () => get(page))
    if (isGet && asset) return new Response(asset.text(), { headers: headed({ 'content-type': asset.type }) })
    // Somebody reopened the URL of an action.
    if (isGet) return new Response(null, { status: 303, headers: headed({ location: page.at('') }) })
    return plain(405, `${request.method} is not allowed here.`)
  }

  return async (request: Request): Promise<Response> => {
    // `authorize` may consume the body.
    const unread = request.method === 'POST' && !request.bodyUsed ? request.clone() : request
    const admitted = await access(request)
    if (!('mayAct' in admitted)) return admitted
    const answer = await route(unread, admitted)
    return isNotModified(request, answer) ? new Response(null, { status: 304, headers: answer.headers }) : answer
  }
}

async function document(
  page: PageState,
  answer: Answer,
  pauses: readonly Pause[] = [],
  missing = 0,
): Promise<Response> {
  const text = await html`<!doctype html>${<Document page={page} answer={answer} pauses={pauses} missing={missing} />}`
  const headers = headed({ 'content-type': 'text/html; charset=utf-8', etag: await makeEtag(`${text}`) })
  return new Response(`${text}`, { status: answer.status ?? 200, headers })
}

/**
 * Hashes what is sent, ages such as "5 min ago" included, since the reader sees them. A form's `until` is left out: an
 * unchanged page works with an earlier one.
 */
const makeEtag = async (text: string): Promise<string> =>
  `"${(await sha256(text.replace(/(name="until" value=")\d+/g, '$1'))).slice(0, 32)}"`

/** `includes`, because a proxy may have made the ETag weak (`W/…`). */
function isNotModified({ method, headers }: Request, { status, headers: sent }: Response): boolean {
  const tag = sent.get('etag')
  return method !== 'POST' && status === 200 && tag !== null && headers.get('if-none-match')?.includes(tag) === true
}

const statuses: Readonly<Record<string, number>> = {
  invalid_option: 400,
  incomplete: 400,
  too_large: 413,
  body_consumed: 500,
}

/** What no storage throws: a failed `fetch` is a TypeError, too, but has a cause. */
const isFault = (error: unknown): boolean =>
  [TypeError, ReferenceError, RangeError].some((kind) => error instanceof kind) && (error as Error).cause === undefined

function statusOf(error: unknown): number {
  if (isFault(error)) return 500
  return (error instanceof WebhookError ? statuses[error.code] : undefined) ?? 503
}
