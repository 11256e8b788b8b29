import { expect, test } from 'vitest'
import { sourceTexts } from '../support/source-texts.ts'
import { exceptions } from './exceptions.ts'
import { type Kind, limits, measure } from './measure.ts'

/** Most lines of `src/inbox`: a rough budget, with room for fixes. */
const inboxLines = 17_230

const measured = measure(Object.fromEntries([...sourceTexts('src'), ...sourceTexts('adapters')]))

/** What is over the limit, with the largest size of each name: of a class the next twenty lines, so that a fix has room. */
const overLimit = (kind: Kind): Readonly<Record<string, number>> =>
  Object.fromEntries(
    measured
      .filter((each) => each.kind === kind && each.size > limits[kind])
      .sort((a, b) => a.size - b.size)
      .map(({ name, size }) => [name, kind === 'lines of a class' ? Math.ceil(size / 20) * 20 : size]),
  )

test.each(Object.entries(limits) as [Kind, number][])('%s: at most %i, or as in exceptions.ts', (kind) => {
  const advice = 'split what is new or has grown; lower the exception of what has shrunk, or remove it'
  expect(overLimit(kind), advice).toEqual(exceptions[kind])
})

test(`src/inbox has at most ${inboxLines} lines`, () => {
  const lines = sourceTexts('src/inbox').reduce((sum, [, text]) => sum + text.split('\n').length - 1, 0)
  expect(lines).toBeLessThanOrEqual(inboxLines)
})

const sizesIn = (kind: Kind, text: string) =>
  measure({ 'a.ts': text })
    .filter((each) => each.kind === kind)
    .map(({ name, size }) => `${name.replace('a.ts ', '')}: ${size}`)

test('the lines of a class are all that it has, comments included', () => {
  const text = '/** A. */\nexport class A {\n  // One.\n  one = 1\n\n  two() {}\n}\n'
  expect(sizesIn('lines of a class', text)).toEqual(['A: 6'])
})

test.each([
  ['a declaration', '/** F. */\nexport function f() {\n  return 1\n}\n', ['f: 3']],
  ['an arrow', 'const f = () =>\n  1\n', ['f: 2']],
  ['what it nests', 'function f() {\n  const g = () => {\n    g()\n  }\n}\n', ['f: 5', 'f.g: 3']],
  ['no method of a class', 'class A {\n  b() {\n    return 1\n  }\n}\n', ['A.b: 3']],
  [
    'no member of an object',
    'const f = () => ({\n  g() {\n    f()\n  },\n  h: () =>\n    1,\n})\n',
    ['f: 2', 'f.g: 3', 'f.h: 2'],
  ],
  ['no test that it declares', "function f() {\n  test('closes', () => {\n    f()\n  })\n}\n", ['f: 2', 'f.closes: 3']],
])('the lines of a function: %s', (_, text, sizes) => {
  expect(sizesIn('lines of a function', text)).toEqual(sizes)
})

test('the parameters of a function are counted where it has a body', () => {
  const text =
    'declare function f(a, b, c)\nclass A {\n  constructor(a, { b, c }) {}\n}\nconst g = (a, ...rest) => [].map(() => a)\n'
  expect(sizesIn('parameters of a function', text)).toEqual(['A.constructor: 2', 'g: 2', 'g: 0'])
})

test.each([
  ['counts its members', 'export interface A { b(): void; readonly c: () => void; d: string }', ['A: 3']],
  ['counts overloads once', 'export interface A { b(): void; b(c: string): void }', ['A: 1']],
  [
    'counts what it inherits',
    'interface A { b(): void; c(): void }\nexport interface D extends A { c(): void }',
    ['D: 2'],
  ],
  ['consists of functions mostly', 'export interface A { b(): void; c: string }', []],
  ['is exported', 'interface A { b(): void }', []],
])('a port %s', (_, text, sizes) => {
  expect(sizesIn('members of a port', text)).toEqual(sizes)
})
