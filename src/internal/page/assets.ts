import { readFileSync } from 'node:fs'

export interface Asset {
  readonly type: string
  readonly text: () => string
}

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#3b6fd4" stroke-width="2"
stroke-linecap="round" stroke-linejoin="round"><path d="M2 8h8M7 5l3 3-3 3M14 3v10"/></svg>`

// The build inlines the text of these files.
const style = () => readFileSync(new URL('./style.css', import.meta.url), 'utf8')
const page = () => readFileSync(new URL('./page.js', import.meta.url), 'utf8')
const morph = () => readFileSync(new URL('./morph.js', import.meta.url), 'utf8')
const localTimes = () => readFileSync(new URL('./local-times.js', import.meta.url), 'utf8')

/**
 * Returns the assets of a page by file name.
 * @param own the page's live-update script and its extra styles
 */
export const makeAssets = (own: { readonly browser: () => string; readonly style: () => string }) =>
  new Map<string, Asset>([
    ['style.css', { type: 'text/css; charset=utf-8', text: () => style() + own.style() }],
    // The shared scripts lie in another source folder but are served from the same one.
    [
      'browser.js',
      { type: 'text/javascript; charset=utf-8', text: () => own.browser().replaceAll('../../../internal/page/', './') },
    ],
    ['page.js', { type: 'text/javascript; charset=utf-8', text: page }],
    ['morph.js', { type: 'text/javascript; charset=utf-8', text: morph }],
    ['local-times.js', { type: 'text/javascript; charset=utf-8', text: localTimes }],
    ['icon.svg', { type: 'image/svg+xml; charset=utf-8', text: () => icon }],
  ])
