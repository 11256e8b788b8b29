import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Group, groups } from './groups.ts'

const filesIn = (folder: string) => {
  const names = readdirSync(new URL(`../../${folder}`, import.meta.url), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name}`)
}
const source = filesIn('src')
const tests = filesIn('test').filter((file) => file.endsWith('.test.ts'))

test.each(Object.entries<Group>(groups))('the patterns of the group %s match files', (_name, group) => {
  const idle = (patterns: readonly string[], files: readonly string[]) =>
    patterns.flatMap(alternatives).filter((pattern) => !files.some((file) => matches(pattern, file)))
  expect(idle(group.mutate, source)).toEqual([])
  expect(idle(group.tests, tests)).toEqual([])
})

test('every file on the path of a delivery is in a group', () => {
  const onThePath = /^src\/(receiver|events|verify|handlers|idempotency|inbox|internal)\//
  const isMutated = (file: string) =>
    Object.values<Group>(groups).some(({ mutate }) => {
      // The last pattern that matches a file decides.
      const last = mutate.flatMap(alternatives).findLast((pattern) => matches(pattern, file))
      return last !== undefined && !last.startsWith('!')
    })
  expect(source.filter((file) => onThePath.test(file) && !isMutated(file))).toEqual([])
})

/** Writes `{a,b}` as two patterns, so that each has to match. */
function alternatives(pattern: string): string[] {
  const [braces, names] = /\{([^{}]*)\}/.exec(pattern) ?? []
  if (braces === undefined || names === undefined) return [pattern]
  return names.split(',').flatMap((name) => alternatives(pattern.replace(braces, name)))
}

/** Matches `*`, which stays in a folder, and `**`. Without its `!`, a pattern matches the files that it leaves out. */
function matches(pattern: string, file: string): boolean {
  const parts: Readonly<Record<string, string>> = { '**/': '(.*/)?', '**': '.*', '*': '[^/]*', '.': '\\.' }
  const text = pattern.replace(/^!/, '').replace(/\*\*\/|\*\*|[*.]/g, (part) => parts[part] ?? part)
  return new RegExp(`^${text}$`).test(file)
}
