import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The source of each entry of the package. */
const entries = Object.values(manifest.exports).flatMap((entry) =>
  typeof entry === 'string' ? [] : entry.import.default.replace(/^\.\/dist\/(.*)\.js$/, `${root}$1.ts`),
)

const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)
const program = ts.createProgram(entries, options)
const checker = program.getTypeChecker()

function exportsOf(entry: string): ts.Symbol[] {
  const module = checker.getSymbolAtLocation(program.getSourceFile(entry) as ts.SourceFile)
  return checker.getExportsOfModule(module as ts.Symbol)
}

const resolved = (symbol: ts.Symbol): ts.Symbol =>
  symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol

const hasDocstring = (symbol: ts.Symbol): boolean => symbol.getDocumentationComment(checker).length > 0

/** The fields and methods of an exported interface of options. */
function optionsOf(symbol: ts.Symbol): ts.Symbol[] {
  const members = symbol.name.endsWith('Options') ? Array.from(symbol.members?.values() ?? []) : []
  return members.filter(({ flags }) => !(flags & ts.SymbolFlags.TypeParameter))
}

describe.each(entries.map((entry) => [entry.slice(root.length), entry]))('%s', (_, entry) => {
  test('exports no name without a docstring', () => {
    const missing = exportsOf(entry).filter((symbol) => !hasDocstring(resolved(symbol)))
    expect(missing.map(({ name }) => name)).toEqual([])
  })

  test('exports no option without a docstring', () => {
    const documented = (option: ts.Symbol) => hasDocstring(option) || option.getJsDocTags(checker).length > 0
    const missing = exportsOf(entry).flatMap((symbol) =>
      optionsOf(resolved(symbol))
        .filter((option) => !documented(option))
        .map(({ name }) => `${symbol.name}.${name}`),
    )
    expect(missing).toEqual([])
  })
})
