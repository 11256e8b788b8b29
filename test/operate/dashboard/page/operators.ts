import type { Locator, Page } from 'playwright-core'
import type { Receiver } from '../../../../src/index.ts'
import { type Dashboard, type DashboardOptions, dashboard } from '../../../../src/operate/dashboard/index.ts'
import { openPage } from '../../../support/browser.ts'
import { serve } from '../../../support/serve.ts'

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

/** Clicks in which an operator gets from the overview to the end of a task. */
const budget = 2

/** The hands of an operator on the overview: they reach what is visible. A click beyond the budget fails. */
export async function handsOn(receiver: Receiver, options: Partial<DashboardOptions> = {}) {
  const page = await openPage({ url: await serveInbox(receiver, options) })
  const done: string[] = []
  const spend = (act: string) => {
    done.push(act)
    if (done.length > budget) throw new Error(`this takes more than ${budget} clicks: ${done.join(', then ')}`)
  }
  return {
    page,
    async click(role: 'link' | 'button', name: string, within: Page | Locator = page) {
      spend(`click ${name}`)
      await within.getByRole(role, { name, exact: true }).click()
    },
    /** Types a text and presses Enter, which counts as one click. */
    async enter(field: string, text: string) {
      spend(`enter ${text}`)
      await page.getByLabel(field, { exact: true }).fill(text)
      await page.keyboard.press('Enter')
    },
  }
}
