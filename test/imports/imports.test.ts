import { relative } from 'node:path/posix'
import { expect, test } from 'vitest'
import { pageOf } from '../docs/pages.ts'
import { sourceTexts } from '../support/source-texts.ts'
import { checkImports } from './check-imports.ts'
import { folders, packages, type Rules } from './rules.ts'

const imports = [...sourceTexts('src'), ...sourceTexts('adapters')].flatMap(([path, text]) => checkImports(path, text))

const problemsIn = (checked: ReturnType<typeof checkImports>) =>
  checked.filter(({ permission }) => permission === undefined).map(({ problem }) => problem)

test('every import is allowed', () => {
  expect(problemsIn(imports)).toEqual([])
})

test.each([
  ['folders', folders],
  ['packages', packages],
])('everything that the rules for %s allow is imported', (_, rules) => {
  const used = new Set(imports.map(({ owner, permission }) => `${owner} imports ${permission}`))
  expect(textsOf(rules).filter((text) => !used.has(text))).toEqual([])
})

const textsOf = (rules: Rules) =>
  Object.entries(rules).flatMap(([owner, allowed]) => allowed.map((each) => `${owner} imports ${each}`))

test('a folder imports only what stands above it in the rules', () => {
  const order = Object.keys(folders)
  const placeOf = (path: string) => order.indexOf(order.includes(path) ? path : path.replace(/\/.*/, ''))
  const isAbove = (owner: string) => (each: string) => placeOf(each) < order.indexOf(owner)
  expect(Object.entries(folders).filter(([owner, allowed]) => !allowed.every(isAbove(owner)))).toEqual([])
})

test('the architecture page shows these rules', () => {
  const table = pageOf('architecture').text.match(/\| Of `src\/` \| May import \|\n\|---\|---\|\n((?:\|.*\n)+)/)?.[1]
  const cell = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ') || 'nothing'
  const rows = Object.entries(folders).map(([owner, allowed]) => `| ${cell([owner])} | ${cell(allowed)} |\n`)
  expect(table).toBe(rows.join(''))
})

/** A file of a folder, or the file itself. */
const pathIn = (owner: string) => `${owner === 'adapters' ? '' : 'src/'}${owner}${owner.endsWith('.ts') ? '' : '/a.ts'}`

test.each(Object.entries(folders))('%s may import none of the others but %j', (owner, allowed) => {
  const others = Object.keys(folders).filter((name) => name !== owner)
  const from = pathIn(owner)
  const refused = others.filter((name) => {
    const specifier = `./${relative(`${from}/..`, pathIn(name))}`
    return problemsIn(checkImports(from, `import type {} from '${specifier}'`)).length > 0
  })
  expect(refused).toEqual(others.filter((name) => !allowed.some((each) => `${name}/`.startsWith(`${each}/`))))
})

test.each([
  ['src/events/a.ts', "import '../inbox/memory.ts'", /^inbox\/memory.ts: events may import errors.ts, internal, /],
  ['src/receiver/a.ts', "import '../../adapters/node.ts'", /^adapters\/node.ts: receiver may import /],
  ['src/cli/a.ts', "import '../../adapters/fetch.ts'", /^adapters\/fetch.ts: cli may import .* adapters\/node.ts/],
  [
    'adapters/koa.ts',
    "import '../src/receiver/receiver.ts'",
    'receiver/receiver.ts: adapters may import internal, index.ts',
  ],
  ['src/new/a.ts', "import '../errors.ts'", 'errors.ts: new may import nothing'],
  ['src/index.ts', "export * from 'zod'", 'zod: index.ts may import nothing'],
  ['src/events/key.ts', "import { randomUUID } from 'node:crypto'", 'node:crypto: events may import #crypto'],
  ['src/events/media-service/wire.ts', "import 'zod'", /^zod: .* may import zod\/mini, zod\/v4\/core$/],
  ['src/handlers/a.ts', "const lru = await import('lru-cache')", 'lru-cache: handlers may import nothing'],
  ['src/inbox/sql/a.ts', "import 'node:fs'", 'node:fs: inbox may import #crypto, lru-cache'],
  ['src/inbox/postgres.ts', "import type { Redis } from 'ioredis'", /^ioredis: inbox\/postgres may import/],
  ['src/inbox/postgres/a.ts', "type Queue = import('bullmq').Queue", /^bullmq: inbox\/postgres may import/],
  ['src/internal/a.ts', "export * from 'node:os'", 'node:os: internal may import nothing'],
  ['adapters/fetch.ts', "import type { Server } from 'node:http'", 'node:http: adapters/fetch may import nothing'],
])('%s must not %s', (path, text, problem) => {
  const [found] = problemsIn(checkImports(path, text))
  expect(found?.replace(`${path.replace('src/', '')} must not import `, '')).toMatch(problem)
})
