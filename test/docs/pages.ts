import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** A fenced block of code of a page. */
export interface Block {
  /** The page and the line of its first line, such as `docs/verify.md:12`. */
  readonly name: string
  readonly language: string
  readonly code: string
}

/** A page as it is written, by its path from the root of the repository. */
export interface Page {
  readonly path: string
  readonly text: string
}

const root = new URL('../../', import.meta.url)

const readPage = (path: string): Page => ({ path, text: readFileSync(new URL(path, root), 'utf8') })

const pagesIn = (folder: string): readonly Page[] =>
  readdirSync(new URL(folder, root))
    .filter((name) => name.endsWith('.md'))
    .map((name) => readPage(folder + name))

/** The architecture decisions. */
export const decisions = pagesIn('docs/decisions/')

/** The README and every page of docs/. */
export const pages: readonly Page[] = [readPage('README.md'), ...pagesIn('docs/'), ...decisions]

/** The other files that readers see in the root. */
export const rootPages: readonly Page[] = ['AGENTS.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'].map(readPage)

/** The page of docs/ with that name. */
export const pageOf = (name: string): Page => pages.find(({ path }) => basename(path, '.md') === name) as Page

/** The blocks of a page, in order. */
export function blocksOf({ path, text }: Page): readonly Block[] {
  return Array.from(text.matchAll(/^```(\w*)[^\n]*\n(.*?)^```$/gms), ({ 1: language = '', 2: code = '', index }) => ({
    name: `${path}:${text.slice(0, index).split('\n').length + 1}`,
    language,
    code,
  }))
}

/** Every line of the shell blocks of a page, without comments. */
export const shellLines = (page: Page): readonly string[] =>
  blocksOf(page)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ code }) => code.split('\n').map((line) => line.replace(/\s+#.*$/, '')))
    .filter((line) => line !== '')
