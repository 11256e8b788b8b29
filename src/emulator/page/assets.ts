import { readFile } from 'node:fs/promises'
import { Hono } from 'hono'

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#3b6fd4" stroke-width="2"
stroke-linecap="round" stroke-linejoin="round"><path d="M2 8h8M7 5l3 3-3 3M14 3v10"/></svg>`

/** What the documents of the page refer to. */
export const assets = new Hono()
  .get('/style.css', async (context) => context.body(await beside('style.css'), 200, typed('text/css')))
  .get('/browser.js', async (context) => context.body(await beside('browser.js'), 200, typed('text/javascript')))
  .get('/morph.js', async (context) => context.body(await beside('morph.js'), 200, typed('text/javascript')))
  .get('/icon.svg', (context) => context.body(icon, 200, typed('image/svg+xml')))

const beside = (name: string): Promise<string> => readFile(new URL(`./${name}`, import.meta.url), 'utf8')

// Asked for anew each time: another version may be at this address tomorrow.
const typed = (type: string) => ({ 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-cache' })
