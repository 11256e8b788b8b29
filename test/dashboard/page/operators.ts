import type { Page } from 'playwright-core'
import { type Dashboard, type DashboardOptions, dashboard } from '../../../src/dashboard/index.ts'
import type { Receiver } from '../../../src/index.ts'
import { openPage } from '../../support/browser.ts'
import { serve } from '../../support/serve.ts'

/** Serves the page of a receiver at `/inbox`. Resolves with its address. */
export async function serveInbox(receiver: Receiver, options: Partial<DashboardOptions> = {}): Promise<string> {
  const page: Dashboard = dashboard(receiver, { path: '/inbox', authorize: () => true, ...options })
  return `${await serve(page.node)}/inbox`
}

/** Opens the page of a receiver in a browser. */
export async function openInbox(receiver: Receiver, options: Parameters<typeof openPage>[1] = {}): Promise<Page> {
  return openPage({ url: await serveInbox(receiver) }, options)
}

/** The result of the last action. */
export const notice = (page: Page) => page.locator('#notice')

/** The card of the only cause, or the first. */
export const firstCause = (page: Page) => page.locator('.causes > li').first()
