import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import * as zod from 'zod'
import * as mediaWebhooks from '../../src/index.ts'

const docs = fileURLToPath(new URL('../../docs', import.meta.url))

/** Compiles modules as those of a strict project that has the package, and returns the compiler's messages. */
export function faultsIn(codes: readonly string[]): string[] {
  const sources = new Map(codes.map((code, index) => [`generated-${index}.ts`, code]))
  return faultsOf(sources).map(({ name, text }) => `${text}\n${sources.get(name)}`)
}

/** Compiles files by their names, in such a project. */
export function faultsOf(files: ReadonlyMap<string, string>, more: ts.CompilerOptions = {}) {
  const sources = new Map([...files].map(([name, code]) => [`${docs}/${name}`, code]))
  const { config } = ts.readConfigFile(`${docs}/tsconfig.json`, ts.sys.readFile)
  const options = { ...ts.parseJsonConfigFileContent(config, ts.sys, docs).options, ...more }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => sources.has(path) || fileExists(path)
  host.readFile = (path) => sources.get(path) ?? readFile(path)
  host.getSourceFile = (path, language, ...rest) => {
    const text = sources.get(path)
    return text === undefined ? getSourceFile(path, language, ...rest) : ts.createSourceFile(path, text, language)
  }
  const program = ts.createProgram([...sources.keys()], options, host)
  return [...files.keys()].flatMap((name) => {
    const file = program.getSourceFile(`${docs}/${name}`)
    const faults = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
    return faults.map(({ messageText }) => ({ name, text: ts.flattenDiagnosticMessageText(messageText, '\n') }))
  })
}

/** Runs a module that imports the package and zod, and returns its exports. */
export function run(code: string, env: Readonly<Record<string, string>> = {}): Record<string, unknown> {
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2023 },
  })
  const modules: Readonly<Record<string, unknown>> = { 'media-webhooks': mediaWebhooks, zod }
  const exports: Record<string, unknown> = {}
  new Function('require', 'exports', 'process', outputText)((name: string) => modules[name], exports, { env })
  return exports
}
