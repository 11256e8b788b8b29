import { readFileSync } from 'node:fs'

/** A file that the documents of a page refer to. */
export interface Asset {
  readonly type: string
  readonly text: () => string
}

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#3b6fd4" stroke-width="2"
stroke-linecap="round" stroke-linejoin="round"><path d="M2 8h8M7 5l3 3-3 3M14 3v10"/></svg>`

// The build replaces each call by the file's text, so that a bundle needs no file beside it.
const style = () => readFileSync(new URL('./style.css', import.meta.url), 'utf8')
const page = () => readFileSync(new URL('./page.js', import.meta.url), 'utf8')
const morph = () => readFileSync(new URL('./morph.js', import.meta.url), 'utf8')
const localTimes = () => readFileSync(new URL('./local-times.js', import.meta.url), 'utf8')

/**
 * Makes the assets of a page, by the names of their files.
 * @param own the script that makes it live, and the styles that only it has
 */
export const assetsOf = (own: { readonly browser: () => string; readonly style: () => string }) =>
  new Map<string, Asset>([
    ['style.css', { type: 'text/css; charset=utf-8', text: () => style() + own.style() }],
    // The shared scripts are in another folder, and served from one.
    [
      'browser.js',
      { type: 'text/javascript; charset=utf-8', text: () => own.browser().replaceAll('../../page/', './') },
    ],
    ['page.js', { type: 'text/javascript; charset=utf-8', text: page }],
    ['morph.js', { type: 'text/javascript; charset=utf-8', text: morph }],
    ['local-times.js', { type: 'text/javascript; charset=utf-8', text: localTimes }],
    ['icon.svg', { type: 'image/svg+xml; charset=utf-8', text: () => icon }],
  ])
