import { readFileSync } from 'node:fs'
import { makeAssets } from '../../../internal/page/assets.ts'

export const assets = makeAssets({
  browser: () => readFileSync(new URL('./browser.js', import.meta.url), 'utf8'),
  style: () => readFileSync(new URL('./style.css', import.meta.url), 'utf8'),
})
