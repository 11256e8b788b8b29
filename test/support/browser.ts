import axe from 'axe-core'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core'
import { describe, expect, onTestFinished } from 'vitest'
import { findChromium } from './find-chromium.ts'

const executablePath = findChromium()

const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Defines a group of tests that need a browser. */
export function describeInBrowser(name: string, tests: () => void): void {
  describe.skipIf(executablePath === undefined)(name, tests)
}

/** One browser for all files of this process. It ends with the process. */
let browser: Promise<Browser> | undefined

/** Opens a window of its own, without cookies. */
async function openContext(options?: BrowserContextOptions): Promise<BrowserContext> {
  browser ??= chromium.launch({ executablePath: executablePath as string, args })
  const context = await (await browser).newContext(options)
  // As for other waits: it ends one that hangs, also on a busy machine.
  context.setDefaultTimeout(120_000)
  return context
}

/**
 * Opens the page for the duration of the test. The test fails if the page sends a request to another host, opens a
 * dialog, throws, or violates its Content-Security-Policy.
 */
export async function openPage({ url }: { readonly url: string }, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await openContext(options)
  const page = await context.newPage()
  const faults: string[] = []
  const { origin } = new URL(url)
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`asked for ${request.url()}`)
  })
  page.on('dialog', (dialog) => faults.push(`opened the dialog ${dialog.message()}`))
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(`threw ${error}`))
  onTestFinished(async () => {
    await context.close()
    expect(faults).toEqual([])
  })
  await page.goto(url)
  if (options.javaScriptEnabled !== false) await page.getByText('● live').waitFor()
  return page
}

/**
 * Looks for faults that keep people with a disability from using the page: contrast, names, roles, order.
 * @returns one line for each
 */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // By the debugger: the policy of the page forbids a script that is added to it.
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
}

/** Opens another page in the same browser. */
export async function openOther(url: string): Promise<Page> {
  const context = await openContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.goto(url)
  return page
}

/** Presses Tab until the target has the focus, and checks that the focus is visible. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  const focused = target.and(page.locator(':focus'))
  for (let presses = 0; (await focused.count()) === 0; presses++) {
    if (presses > 60) throw new Error(`${target} cannot be reached by Tab`)
    await page.keyboard.press('Tab')
  }
  expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid')
}
