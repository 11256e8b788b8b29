import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { type Block, blocksOf, pages } from './pages.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const prelude = `${root}docs/prelude.d.ts`

/** The file of an example that a block shows: its first line is a comment with the path. */
const shownFile = ({ code }: Block): string | undefined => /^\/\/ ([\w-]+\/[\w/.[\]+-]+)\n/.exec(code)?.[1]

/** The file that a block shows parts of: its first line names it. A line with `// …` stands between two parts. */
const excerptOf = ({ code }: Block): string | undefined => /^\/\/ from ([\w/.-]+)\n/.exec(code)?.[1]

const all = pages.flatMap(blocksOf)
// test/examples/ checks the files of examples, with the packages that they need.
const blocks = all.filter((block) => block.language === 'ts' && !shownFile(block) && !excerptOf(block))

/** A block may import another one that begins with the comment `// <its name>.ts`. */
const fileOf = ({ name, code }: Block): string => {
  const [, named] = /^\/\/ ([\w-]+)\.ts\n/.exec(code) ?? []
  return `${root}docs/${named ?? name.replace(/\W/g, '-')}.ts`
}

test('every block of TypeScript in the README and docs/ compiles', () => {
  expect(blocks.length).toBeGreaterThan(40)
  // A block is a module of its own, whether it imports anything or not.
  const sources = new Map(blocks.map((block) => [fileOf(block), `${block.code}\nexport {}\n`]))
  const program = ts.createProgram([prelude, ...sources.keys()], compilerOptions(), hostOver(sources))
  const names = new Map(blocks.map((block) => [fileOf(block), block.name]))
  // The files that the blocks import have a check of their own.
  const errors = [...program.getOptionsDiagnostics(), ...[prelude, ...sources.keys()].flatMap(faultsIn(program))]
  expect(errors.map((error) => explain(error, names))).toEqual([])
})

const folders = ['examples', 'test/examples/frameworks/fixtures'].flatMap((parent) =>
  readdirSync(`${root}${parent}`).map((name) => `${root}${parent}/${name}`),
)

test.each(all.filter(shownFile).map((block) => [block.name, block] as const))(
  '%s is a file of an example',
  (_, block) => {
    const paths = folders.map((folder) => `${folder}/${shownFile(block)}`).filter((path) => existsSync(path))
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toContain(block.code.slice(block.code.indexOf('\n') + 1))
  },
)

test.each(all.filter(excerptOf).map((block) => [block.name, block] as const))(
  '%s shows parts of a file as they are',
  (_, block) => {
    const file = withoutIndentation(readFileSync(`${root}${excerptOf(block)}`, 'utf8'))
    const [, ...lines] = withoutIndentation(block.code).split('\n')
    for (const part of lines.join('\n').split('// …\n')) expect(file).toContain(part)
  },
)

/** What a block imports by path, without extensions. SvelteKit generates `$types`, and `$lib` is `src/lib`. */
const importsOf = (block: Block): readonly { readonly path: string; readonly names: readonly string[] }[] => {
  const folder = dirname(shownFile(block) ?? excerptOf(block) ?? '')
  const imports = block.code.matchAll(/\bimport (?:type )?\{ (.*) \} from '((?:\.{1,2}|\$lib)\/.*?)(?:\.ts)?'/g)
  return Array.from(imports, ([, names = '', path = '']) => ({
    path: path.startsWith('$lib/') ? path.replace('$lib', 'src/lib') : posix.join(folder, path),
    names: names.replaceAll('type ', '').split(', '),
  })).filter(({ path }) => !path.endsWith('/$types'))
}

test('a block imports nothing that its page does not show', () => {
  const faults = pages.flatMap((page) => {
    const files = blocksOf(page).map(({ code }) => ({
      code,
      name: /^\/\/ (?:from )?(\S+)\.[jt]s\n/.exec(code)?.[1] ?? '',
    }))
    const exports = (code: string, name: string) => new RegExp(`^export .*\\b${name}\\b`, 'm').test(code)
    // A file without a folder stands beside the file that imports it.
    const isShown = (path: string, names: readonly string[]) =>
      files.some(({ name, code }) => `/${path}`.endsWith(`/${name}`) && names.every((each) => exports(code, each)))
    return blocksOf(page).flatMap((block) =>
      importsOf(block).flatMap(({ path, names }) => (isShown(path, names) ? [] : [`${block.name} imports ${path}`])),
    )
  })
  expect(faults).toEqual([])
})

/** A method is shown without the indentation of its class. */
const withoutIndentation = (code: string): string => code.replace(/^ +/gm, '')

const faultsIn = (program: ts.Program) => (path: string) => {
  const file = program.getSourceFile(path)
  return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
}

function compilerOptions(): ts.CompilerOptions {
  const path = `${root}docs/tsconfig.json`
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(path, ts.sys.readFile).config,
    ts.sys,
    dirname(path),
  )
  // Examples declare names that a reader uses afterwards, and run in Node and in web runtimes.
  return { ...options, lib: ['lib.es2023.d.ts', 'lib.dom.d.ts'], noUnusedLocals: false, noUnusedParameters: false }
}

function hostOver(sources: ReadonlyMap<string, string>): ts.CompilerHost {
  const host = ts.createCompilerHost({})
  const { getSourceFile, fileExists, readFile } = host
  return Object.assign(host, {
    fileExists: (path: string) => sources.has(path) || fileExists(path),
    readFile: (path: string) => sources.get(path) ?? readFile(path),
    getSourceFile(path: string, options: ts.ScriptTarget | ts.CreateSourceFileOptions) {
      const text = sources.get(path)
      return text === undefined ? getSourceFile(path, options) : ts.createSourceFile(path, text, options)
    },
  })
}

function explain({ file, start = 0, messageText }: ts.Diagnostic, names: ReadonlyMap<string, string>): string {
  const message = ts.flattenDiagnosticMessageText(messageText, ' ')
  if (file === undefined) return message
  const { line } = file.getLineAndCharacterOfPosition(start)
  return `${names.get(file.fileName) ?? file.fileName}, line ${line + 1} of the block: ${message}`
}
