import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { type JobEnd, transitions } from '../../src/inbox/memory/job.ts'
import { pageOf } from './pages.ts'

const { text } = pageOf('architecture')

const foldersOf = (path: string): readonly string[] =>
  readdirSync(new URL(`../../${path}`, import.meta.url), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

const sorted = (words: Iterable<string | undefined>) => [...words].sort()

// The compiler keeps these equal to the type.
const ends = {
  handled: 0,
  failed: 0,
  'in-progress': 0,
  closing: 0,
} satisfies Record<JobEnd, 0>

test('the diagram of a job has each of its transitions, and no other', () => {
  const life = text.slice(text.indexOf('## The life of a job'))
  const diagram = life.match(/stateDiagram-v2\n(.*?)```/s)?.[1] ?? ''
  const drawn = Array.from(diagram.matchAll(/^ {2}(\w+) --> (\S+):/gm), ([, from, to]) => `${from} ${to}`)
  const all = Object.entries(transitions).flatMap(([from, to]) => to.map((state) => `${from} ${state}`))
  // Every job can end when the inbox closes: only the ends of its own are drawn.
  const ends = sorted(drawn.filter((edge) => edge.endsWith(' [*]')))
  expect(ends).toEqual(['running [*]'])
  expect(sorted([...drawn.filter((edge) => !ends.includes(edge))])).toEqual(
    sorted(all.filter((edge) => !edge.endsWith(' ended'))),
  )
})

test('the table of the ends of a job has each of them', () => {
  const table = text.match(/\| End \| Means \|\n\|---\|---\|\n((?:\|.*\n)+)/)?.[1] ?? ''
  expect(sorted(Array.from(table.matchAll(/^\| `(.*?)`/gm), ([, end]) => end))).toEqual(sorted(Object.keys(ends)))
})

test('the list of folders has each folder of src/, of its rooms and of the emulator', () => {
  const list = text.match(/```\nsrc\/\n(.*?)^adapters\//ms)?.[1] ?? ''
  const indented = (spaces: number) =>
    Array.from(list.matchAll(new RegExp(`^ {${spaces}}((?:[\\w-]+\\/ ?)+)`, 'gm')), ([, names = '']) =>
      names.trim().replaceAll('/', '').split(' '),
    ).flat()
  expect(sorted(indented(2))).toEqual(sorted(foldersOf('src')))
  const rooms = ['src/inbox', 'src/operate', 'src/service']
  expect(sorted(indented(4))).toEqual(sorted([...rooms.flatMap(foldersOf), 'page', 'storage']))
  const sentence = text.match(/^The emulator has a folder each for .*?\n\n/ms)?.[0] ?? ''
  expect(sorted(Array.from(sentence.matchAll(/`(.*?)`/g), ([, name]) => name))).toEqual(
    sorted(foldersOf('src/service/emulator')),
  )
})

test('the inboxes know in one place that Workers end requests', () => {
  const source = new URL('../../src/inbox/', import.meta.url)
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  const knowing = files.filter((path) =>
    /requestsEndWork|Cloudflare-Workers/.test(readFileSync(new URL(path, source), 'utf8')),
  )
  expect(knowing).toEqual(['memory.ts'])
})

test('every dependency has its reason in a table', () => {
  const tables = text.slice(text.indexOf('## Why these dependencies'))
  const firstCells = Array.from(tables.matchAll(/^\|[^|]+\|/gm), ([cell]) => cell).join()
  const named = Array.from(firstCells.matchAll(/`(.+?)`/g), ([, name = '']) => name)
  const packages = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.devDependencies })
  const isFor = (name: string, each: string) =>
    name.endsWith('*') ? each.startsWith(name.slice(0, -1)) : each === name
  expect(packages.filter((each) => !named.some((name) => isFor(name, each)))).toEqual([])
  expect(named.filter((name) => !packages.some((each) => isFor(name, each)))).toEqual([])
})
