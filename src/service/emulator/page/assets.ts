import { readFileSync } from 'node:fs'
import { Hono } from 'hono'
import { makeAssets } from '../../../internal/page/assets.ts'

const files = makeAssets({
  browser: () => readFileSync(new URL('./browser.js', import.meta.url), 'utf8'),
  style: () => readFileSync(new URL('./style.css', import.meta.url), 'utf8'),
})

export const assets = new Hono()
for (const [name, { type, text }] of files) {
  // Not cached: tomorrow this address may serve another version.
  const headers = { 'content-type': type, 'cache-control': 'no-cache' }
  assets.get(`/${name}`, (context) => context.body(text(), 200, headers))
}
