import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { describeInBrowser, openOther } from '../../support/browser.ts'
import { serve } from '../../support/serve.ts'
import { pages } from '../pages.ts'

const root = new URL('../../../', import.meta.url)
const built = new URL('docs/.vitepress/dist/', root)
const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }

/** Serves the built site until the end of the test. */
const serveSite = () =>
  serve(async ({ url = '' }, res) => {
    const path = new URL(url, 'http://site').pathname.replace(/\/$/, '/index.html')
    try {
      const file = await readFile(new URL(`.${path}`, built))
      res.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream' }).end(file)
    } catch {
      res.writeHead(404).end()
    }
  })

const results = (page: Page) => page.locator('.VPLocalSearchBox .result')

/** Opens the search by keyboard, and types. Returns the addresses of what it finds, the first one first. */
async function find(text: string): Promise<string[]> {
  const page = await openOther(`${await serveSite()}/getting-started.html`)
  // The page listens for the key once its script runs.
  await expect.poll(() => page.keyboard.press('/').then(() => page.locator('.VPLocalSearchBox').count())).toBe(1)
  await page.locator('#localsearch-input').fill(text)
  await results(page).first().waitFor()
  const addresses = await results(page).evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''))
  await page.keyboard.press('Enter')
  await page.waitForURL(`**${addresses[0]}`)
  return addresses
}

describeInBrowser('the search of the site', () => {
  beforeAll(() => {
    // CI has just built it.
    if (process.env['SITE_IS_BUILT'] === 'true') return
    execFileSync('npm', ['run', 'docs:build'], { cwd: fileURLToPath(root), stdio: 'pipe' })
  })

  test.each(['retry', 'duplicate', 'postgres'])('finds guides of %s before the reference', async (word) => {
    const found = await find(word)
    expect(found.length).toBeGreaterThan(5)
    expect(found.slice(0, 3).filter((address) => address.includes('/api/'))).toEqual([])
  })

  test.each(['mux', 'cloudflare stream'])('finds the page about other services first for %s', async (words) => {
    const [first] = await find(words)
    expect(first).toMatch(/^\/senders/)
  })

  test.each([
    ['nextjs', '/mount'],
    ['retry', '/handlers.html#retry-a-failed-handler'],
    ['docker', '/production.html#docker'],
    ['prisma', '/exactly-once'],
    ['drizzle', '/exactly-once'],
    ['ngrok', '/commands'],
    ['shopify', '/recipes'],
  ])('finds for %s first %s', async (word, address) => {
    expect((await find(word))[0]).toContain(address)
  })

  test('has the Markdown of each guide beside its page, and lists them in llms.txt', async () => {
    const site = await serveSite()
    const read = async (path: string) => (await fetch(`${site}/${path}`)).text()
    const list = await read('llms.txt')
    expect(list).toMatch(
      /^# media-webhooks\n\n> Receives .*\n\n## Start\n\n- \[Getting started\]\(\.\/getting-started\.md\)\n/,
    )
    for (const [, path = ''] of list.matchAll(/\(\.\/(.*?\.md)\)/g))
      expect(await read(path), path).toMatch(/^(# |---|<!--@include)/)
  })

  test('cuts off no table of a guide at 1280 px', async () => {
    const site = await serveSite()
    const page = await openOther(site)
    await page.setViewportSize({ width: 1280, height: 900 })
    const cut: string[] = []
    for (const { path } of pages.filter(({ path }) => /^docs\/.*\.md$/.test(path))) {
      const name = path.replace(/^docs\/|\.md$/g, '')
      await page.goto(`${site}/${name}.html`)
      const tables = page.locator('.vp-doc table')
      const widths = await tables.evaluateAll((all) => all.map((each) => each.scrollWidth - each.clientWidth))
      for (const [index, width] of widths.entries()) if (width > 0) cut.push(`${name}, table ${index + 1}: ${width} px`)
    }
    expect(cut).toEqual([])
  })

  test.each([
    ['createReceiver', '/api/media-webhooks/functions/createReceiver.html'],
    ['ReceiverOptions', '/api/media-webhooks/interfaces/ReceiverOptions.html'],
    ['sqliteInbox', '/api/media-webhooks/inbox/sqlite/functions/sqliteInbox.html'],
  ])('finds the page of %s among the first five', async (name, address) => {
    const found = await find(name)
    expect(found.slice(0, 5)).toContainEqual(expect.stringContaining(address))
  })

  test('lists the guides in one menu, and the symbols of the reference in another', async () => {
    const site = await serveSite()
    const page = await openOther(site)
    const menuOf = async (path: string) => {
      await page.goto(`${site}/${path}.html`)
      return page.locator('.VPSidebar a').evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    }
    const guides = await menuOf('getting-started')
    expect(guides.filter((address) => address?.includes('/api/'))).toEqual(['/api/media-webhooks/'])
    const reference = await menuOf('api/media-webhooks/interfaces/ReceiverOptions')
    expect(reference).toContain('/api/media-webhooks/interfaces/ReceiverOptions.html')
    expect(reference.filter((address) => !address?.startsWith('/api/'))).toEqual([])
  })
})
