import ts from 'typescript'
import { blocksOf, pageOf } from './pages.ts'

/**
 * Runs a block of a page that begins with `// <name>.ts`, and returns its exports.
 * @param modules what the block imports, by name
 */
export function exportsOf(page: string, name: string, modules: Readonly<Record<string, unknown>>) {
  const block = blocksOf(pageOf(page)).find(({ code }) => code.startsWith(`// ${name}.ts\n`))
  const { outputText } = ts.transpileModule(block?.code ?? '', {
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2023 },
  })
  const exports: Record<string, unknown> = {}
  new Function('require', 'exports', outputText)((module: string) => modules[module], exports)
  return exports
}
