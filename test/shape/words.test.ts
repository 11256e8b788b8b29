import ts from 'typescript'
import { expect, test } from 'vitest'
import { sourceTexts } from '../support/source-texts.ts'

// The glossary is in docs/contributing.md. Each of these verbs would be a second word for its `release`.

const forbidden =
  /\b\w*?(?:giveBack|givesBack|giveUp|handBack|handOver|handsOver|putBack|keepOnly|abandon|postpone)\w*/gi

const sources = () => [...sourceTexts('src'), ...sourceTexts('adapters')]

const wordsIn = (text: string): readonly string[] => text.match(forbidden) ?? []

test('a lane, an event or a key goes back by one verb: release', () => {
  const found = sources().flatMap(([path, text]) => wordsIn(text).map((word) => `${path}: ${word}`))
  expect(found).toEqual([])
})

test.each(['lane.giveBack()', 'handOverOverdue(queue)', '#abandonAll', 'postponed'])('%s is found', (text) => {
  expect(wordsIn(text)).toHaveLength(1)
})

const acts = (node: ts.Node): boolean =>
  ts.isAwaitExpression(node) ||
  ts.isThrowStatement(node) ||
  (ts.isFunctionLike(node) &&
    (ts.getCombinedModifierFlags(node as ts.FunctionDeclaration) & ts.ModifierFlags.Async) !== 0) ||
  ts.forEachChild(node, (child) => acts(child) || undefined) === true

/** Functions named `…Of` that wait or throw, so that their name should start with a verb. */
function actingAccessors(text: string): readonly string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (isNamed(node) && node.name.getText().endsWith('Of') && acts(node)) found.push(node.name.getText())
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('text.tsx', text, ts.ScriptTarget.Latest, true))
  return found
}

const isNamed = (node: ts.Node): node is ts.FunctionDeclaration & { readonly name: ts.Identifier } =>
  (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isVariableDeclaration(node)) &&
  node.name !== undefined

test('a function named …Of is an accessor: one that waits or throws says what it does', () => {
  const found = sources().flatMap(([path, text]) => actingAccessors(text).map((name) => `${path}: ${name}`))
  // A combinator of the public API, which reads as a sentence.
  expect(found).toEqual(['src/verify/any-of.ts: anyOf'])
})

test.each([
  'async function keyOf(a) { return read(a) }',
  'const keyOf = async (a) => read(a)',
  'class Keys { static #keyOf(a) { if (!a) throw invalid(a) } }',
])('%s is found', (text) => {
  expect(actingAccessors(text)).toHaveLength(1)
})
