import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Stryker } from '@stryker-mutator/core'

type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number]

const listed = new Set(readFileSync(new URL('survivors.md', import.meta.url), 'utf8').split('\n'))

/** Returns a line for each mutant that no test kills and that survivors.md does not list. */
export function unlisted(mutants: readonly MutantResult[]): readonly string[] {
  const alive = mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
  return alive.map(describe).filter((line) => !listed.has(line))
}

/** Describes a mutant by its code, since line numbers change too often. */
function describe({ fileName, location: { start, end }, replacement = '' }: MutantResult): string {
  const lines = readFileSync(fileName, 'utf8')
    .split('\n')
    .slice(start.line - 1, end.line)
  // The end first: it can be in the same line.
  lines.push((lines.pop() ?? '').slice(0, end.column - 1))
  const code = lines.join('\n').slice(start.column - 1)
  return `- ${relative('.', fileName)}: \`${oneLine(code)}\` → \`${oneLine(replacement)}\``
}

function oneLine(code: string): string {
  const text = code.replace(/\s+/g, ' ').replaceAll('`', "'").trim()
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}
