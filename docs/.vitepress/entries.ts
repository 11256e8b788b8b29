import { readFileSync } from 'node:fs'
import ts from 'typescript'

const path = new URL('../tsconfig.json', import.meta.url)
const { config } = ts.parseConfigFileTextToJson(path.pathname, readFileSync(path, 'utf8'))

/** The public entries: the name that users import, and the source file relative to docs/. */
export const entries: readonly (readonly [name: string, source: string])[] = Object.entries(
  config.compilerOptions.paths as Record<string, [string]>,
).flatMap(([name, [source]]) => (name.startsWith('#') ? [] : [[name, source] as const]))
