import { readFileSync } from 'node:fs'
import { Hono } from 'hono'

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#3b6fd4" stroke-width="2"
stroke-linecap="round" stroke-linejoin="round"><path d="M2 8h8M7 5l3 3-3 3M14 3v10"/></svg>`

// The build replaces each call by the file's text, so that a bundle needs no file beside it.
const style = () => readFileSync(new URL('../../page/style.css', import.meta.url), 'utf8')
const browser = () => readFileSync(new URL('../../page/browser.js', import.meta.url), 'utf8')
const morph = () => readFileSync(new URL('../../page/morph.js', import.meta.url), 'utf8')

/** The files that the page's documents refer to. */
export const assets = new Hono()
  .get('/style.css', (context) => context.body(style(), 200, typed('text/css')))
  .get('/browser.js', (context) => context.body(browser(), 200, typed('text/javascript')))
  .get('/morph.js', (context) => context.body(morph(), 200, typed('text/javascript')))
  .get('/icon.svg', (context) => context.body(icon, 200, typed('image/svg+xml')))

// Not cached: another version of the emulator can be at this address tomorrow.
const typed = (type: string) => ({ 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-cache' })
