import { WebhookError } from '../../errors.ts'
import type { AnySender } from '../../events/sender.ts'
import type { Receiver } from '../../receiver/options.ts'
import { accessRule } from './access/access.ts'
import { answerNode } from './access/node.ts'
import { createApp } from './app.tsx'
import { checkDashboardOptions, type Dashboard, type DashboardOptions } from './options.ts'
import { makeSubject, type Shown } from './subject.ts'

/**
 * Creates a web page for the inbox of a receiver. It shows what waits, what failed and why, and the outcome of each
 * event. Operators replay, discard and retry events there.
 *
 * ```ts
 * const page = dashboard(receiver, { path: '/inbox', authorize: (request) => isOperator(request) })
 * app.use('/inbox', page.node) // Express
 * app.all('/inbox/*', (c) => page.fetch(c.req.raw)) // Hono
 * ```
 *
 * Every request goes through `authorize`, and actions must come from the page itself.
 * @throws WebhookError `invalid_option`
 */
export function dashboard(
  receiver: Pick<Receiver, 'inbox' | 'observe' | 'setup'> & { readonly sender?: Pick<AnySender, 'name' | 'types'> },
  options: DashboardOptions,
): Dashboard {
  if (typeof receiver?.observe !== 'function' || receiver.inbox === undefined)
    throw new WebhookError('invalid_option', 'dashboard: the first argument must be a receiver')
  const { inbox, setup, observe, sender } = receiver
  const {
    order,
    inbox: { name },
  } = setup
  const isQueue = inbox.handleMessage !== undefined
  return createDashboard({ inbox, name, logger: setup.logger, isQueue, order, sender, observe }, options)
}

/** Like {@link dashboard}, but also works without a receiver: `media-webhooks inbox serve` opens an inbox directly. */
export function createDashboard(shown: Shown, options: DashboardOptions): Dashboard {
  const checked = checkDashboardOptions(options)
  const answer = createApp(makeSubject(shown, checked), checked.path, accessRule(checked, shown.logger))
  return {
    fetch: answer,
    node: (request, response) => answerNode(answer, request, response, shown.logger),
  }
}
