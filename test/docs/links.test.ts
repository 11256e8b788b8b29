import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { decisions, pageOf, pages, rootPages } from './pages.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The anchors of a page's headings, as GitHub and VitePress both make them. */
const anchorsOf = (text: string): readonly string[] =>
  Array.from(text.matchAll(/^#+ (.*)$/gm), ([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]+/g, ' ')
      .trim()
      .replace(/\s+/g, '-'),
  )

function faultOf(from: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? from : join(dirname(from), path)
  if (!existsSync(join(root, target))) return `${from} links to ${link}, which does not exist`
  if (anchor === undefined || anchorsOf(readFileSync(join(root, target), 'utf8')).includes(anchor)) return undefined
  return `${from} links to ${link}, which has no such heading`
}

test('every link of the README, docs/ and the other pages in the root leads to a file and a heading', () => {
  const faults = [...pages, ...rootPages].flatMap(({ path, text }) => {
    const prose = text.replace(/^```.*?^```$/gms, '')
    const links = Array.from(prose.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g), ([, a, b]) => a ?? b ?? '')
    return links.filter((link) => !/^https?:/.test(link)).map((link) => faultOf(path, link))
  })
  expect(faults.filter((fault) => fault !== undefined)).toEqual([])
})

test('every path of the repository that a page names exists', () => {
  const named = [...pages, ...rootPages].flatMap(({ path, text }) =>
    Array.from(text.matchAll(/`((?:src|adapters|test|docs|examples|bench|demo)\/[\w./-]*)`/g), ([, to]) => [path, to]),
  )
  expect(named.filter(([, to = '']) => !existsSync(join(root, to)))).toEqual([])
})

test('Architecture lists every decision', () => {
  const listed = Array.from(
    pageOf('architecture').text.matchAll(/\]\(\.\/(decisions\/[\w-]+\.md)\)/g),
    ([, path]) => `docs/${path}`,
  )
  expect(listed.sort()).toEqual(decisions.map(({ path }) => path).sort())
})
