import { readFileSync } from 'node:fs'
import { assetsOf } from '../../../internal/page/assets.ts'

export const assets = assetsOf({
  browser: () => readFileSync(new URL('./browser.js', import.meta.url), 'utf8'),
  style: () => readFileSync(new URL('./style.css', import.meta.url), 'utf8'),
})
