import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { entries } from '../../entries.ts'
import manifest from '../../package.json' with { type: 'json' }
import { acknowledged, rejection } from '../../src/receiver/acknowledgement.ts'
import { decisions, type Page, pageOf, rootPages, shellLines } from './pages.ts'

// The pages for those who change the code. What they say about the code is read from the code here.

const root = fileURLToPath(new URL('../../', import.meta.url))
const howTo = [pageOf('contributing'), pageOf('add-a-database'), pageOf('change-the-tables')]
const reasons = [pageOf('architecture'), ...decisions]
const guides = [...howTo, ...reasons, ...rootPages.filter(({ path }) => /AGENTS|CONTRIBUTING/.test(path))]

const textOf = (path: string): string => {
  if (!statSync(root + path).isDirectory()) return readFileSync(root + path, 'utf8')
  const files = readdirSync(root + path, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name))
  return files.map((name) => readFileSync(`${root}${path}/${name}`, 'utf8')).join('')
}

const linesIn = (...paths: readonly string[]): number => paths.map(textOf).join('').split('\n').length

const numberIn = (path: string, pattern: RegExp): number => Number(pattern.exec(textOf(path))?.[1])

/** A guide without its code, except commands, and without the rules for imports, which have a test of their own. */
const proseOf = ({ text }: Page): string =>
  text.replace(/^```.*?^```$|^\| Of `src\/`.*?\n\n/gms, (part) => (part.startsWith('```sh') ? part : ''))

const spansIn = (text: string): readonly string[] => Array.from(text.matchAll(/`([^`\n]+)`/g), ([, span = '']) => span)

const isPath = (span: string): boolean =>
  /^[\w.-]+(\/[\w.-]*)*$/.test(span) &&
  /\/|^\.|\.(tsx?|mjs|json|md|sh|yaml)$/.test(span) &&
  !entries.some(({ name }) => name === span)

const isName = (span: string): boolean => /^[a-z]\w*(\.\w+)*$/i.test(span) && !isPath(span)

test('every file and folder that a guide names exists', () => {
  const named = guides.flatMap((page) => [
    ...spansIn(proseOf(page)).filter(isPath),
    ...shellLines(page).flatMap((line) => line.split(' ').filter((word) => word.includes('/'))),
  ])
  expect(named.filter((path) => !existsSync(root + path))).toEqual([])
})

test('every name in a guide is a name in the code', () => {
  const folders = [
    '.ci',
    'src',
    'adapters',
    'demo',
    'bench',
    ...readdirSync(`${root}test`).map((name) => `test/${name}`),
  ]
  const source = [...folders.filter((path) => path !== 'test/docs'), 'package.json', '.github/workflows/release.yml']
    .map(textOf)
    .join('\n')
  const words = new Set(source.match(/\w+/g))
  const names = guides.flatMap((page) => spansIn(proseOf(page)).filter(isName))
  expect(names.filter((name) => !name.split('.').every((word) => words.has(word)))).toEqual([])
})

test('a table gives for each name a file or folder that declares it', () => {
  const rows = guides.flatMap((page) => Array.from(proseOf(page).matchAll(/^\| (`.*?) \| (.*)$/gm)))
  const faults = rows.flatMap(([, first = '', others = '']) => {
    const code = spansIn(others).filter(isPath).map(textOf).join('\n')
    const isDeclared = (name: string) => new RegExp(`\\b(class|interface|type|function|const) ${name}\\b`).test(code)
    return code === '' ? [] : spansIn(first).filter((span) => isName(span) && !isDeclared(span))
  })
  expect(faults).toEqual([])
})

/** The npm scripts in a command, with the words after `--`. */
const scriptsIn = (command: string) =>
  Array.from(
    command.matchAll(/npm (?:run )?(?!(?:ci|publish|deprecate)\b)([\w:]+)(?: -- ([^&]*))?/g),
    ([, name = '', given = '']) => ({
      name,
      words: given.match(/[a-z][a-z-]*/g) ?? [],
    }),
  )

test('every npm script that a guide names exists, and its program knows the arguments', () => {
  const scripts: Readonly<Record<string, string>> = manifest.scripts
  const programOf = (name: string) => /^tsx (\S+)/.exec(scripts[name] ?? '')?.[1] ?? 'package.json'
  const named = guides.flatMap((page) => [...spansIn(proseOf(page)), ...shellLines(page)]).flatMap(scriptsIn)
  expect(named.filter(({ name }) => scripts[name] === undefined)).toEqual([])
  const isKnown = (name: string) => (word: string) => textOf(programOf(name)).includes(word)
  expect(named.filter(({ name, words }) => !words.every(isKnown(name)))).toEqual([])
})

type Numbers = readonly (readonly [words: RegExp, actual: number])[]

/** The numbers in the guides, by the words around them. */
const exact: Numbers = [
  [/Node ([\d.]+) or later/, Number.parseFloat(manifest.engines.node.slice(2))],
  [/anything but (\d+)/, acknowledged.accepted.status],
  [/(\d+) kills of SQLite/, numberIn('test/inbox/sqlite/kills.test.ts', /killRun\((\d+)/)],
  [/(\d+)\s+of Postgres/, numberIn('test/inbox/postgres/kills.test.ts', /kills: (\d+)/)],
  [/answers (\d+) `body_consumed`/, rejection('body_consumed', '').status],
  [/the (\d+) at its top/, textOf('test/inbox/guide/libsql-database.ts').match(/CREATE TABLE/g)?.length ?? 0],
]

const rounded: Numbers = [
  [/\| `LibsqlDatabase` .*?\| ([\d,]+) \|/, linesIn('test/inbox/guide/libsql-database.ts')],
  [/\| `FileDatabase`.*?\| ([\d,]+), /, linesIn('src/inbox/sqlite')],
  [/\| `ObjectDatabase` .*?\| ([\d,]+) more/, linesIn('src/inbox/durable-object')],
  [/\| `PostgresDatabase` .*?\| ([\d,]+) \|/, linesIn('src/inbox/postgres')],
]

const pagesWithNumbers = guides.filter((page) => !reasons.includes(page))

const statedBy = (words: RegExp): readonly number[] =>
  pagesWithNumbers.flatMap((page) => words.exec(proseOf(page))?.[1] ?? []).map((text) => Number(text.replace(',', '')))

test.each(exact)('the number in %s is that of the code', (words, actual) => {
  expect(statedBy(words)).toEqual([actual])
})

test.each(rounded)('the number in %s is about that of the code', (words, actual) => {
  const [stated] = statedBy(words)
  expect(stated).toBeGreaterThan(actual * 0.8)
  expect(stated).toBeLessThan(actual * 1.2)
})

test('a guide has no other number', () => {
  const unchecked = pagesWithNumbers.map((page) => {
    const prose = [...exact, ...rounded].reduce((text, [words]) => text.replace(words, ''), proseOf(page))
    const plain = prose.replace(/`[^`\n]+`|\]\([^)]*\)|^\d+\. /gm, '')
    return plain.match(/.*(\d|\b(two|three|four|five|six|seven|eight|nine|ten|twelve|dozen|hundred)\b).*/gi)
  })
  expect(unchecked.filter((lines) => lines !== null)).toEqual([])
})
