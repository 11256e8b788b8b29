import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import { WebhookError } from '../../../errors.ts'
import { Notices } from '../../../internal/page/notices.tsx'
import { readText } from '../http/read-body.ts'
import type { EmulatedService } from '../service/service.ts'
import { createActions } from './actions.ts'
import { assets } from './assets.ts'
import { Document, sections } from './document.tsx'
import type { PageState } from './page-state.ts'
import { makeAddress, readView } from './view.ts'

/**
 * The page: plain documents and forms that work without a script. `browser.js` makes them live.
 *
 * - `GET /` answers the whole page, `GET /page/sections/<id>` one section, in the view of the query.
 * - `POST /page/…` runs an action, then redirects to the view it came from, or shows that view with the error.
 */
export function createPage(service: EmulatedService): Hono {
  const notices = new Notices()
  const makeState = ({ req }: Context): PageState => ({
    service,
    origin: new URL(req.url).origin,
    view: readView(req.query()),
  })

  const app = new Hono()
  app.route('/page', assets)
  app.get('/', (context) => show(context, { ...makeState(context), notice: notices.take(context.req.query('notice')) }))
  app.get('/page/sections/:id', (context) => {
    const Section = sections.get(context.req.param('id'))
    return Section === undefined ? context.notFound() : context.html(<Section page={makeState(context)} />)
  })
  for (const [path, act] of Object.entries(createActions(service))) {
    app.post(`/page/${path}`, async (context) => {
      const page = makeState(context)
      const typed = new URLSearchParams(await readText(context.req))
      try {
        const { change, ...notice } = await act(typed, context.req.param('id') ?? '')
        return context.redirect(makeAddress(page.view, { ...change, notice: notices.leave(notice) }), 303)
      } catch (error) {
        if (!(error instanceof WebhookError)) throw error
        const action = context.req.path.slice('/page/'.length)
        return show(context, { ...page, formError: { action, message: error.message, typed } }, 422)
      }
    })
  }
  return app
}

/** Answers the whole page. Uncacheable, because it may hold a secret. */
function show(context: Context, page: PageState, status: 200 | 422 = 200) {
  context.header('Cache-Control', 'no-store')
  return context.html(html`<!doctype html>${<Document page={page} />}`, status)
}
