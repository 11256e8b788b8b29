import { dirname, join } from 'node:path/posix'
import ts from 'typescript'
import { folders, packages, type Rules } from './rules.ts'

/** An import of a package, or from one folder to another. */
export interface CheckedImport {
  /** The folder or file whose rule decides. */
  readonly owner: string
  /** What that rule allows, and is imported here; `undefined` if the import breaks the rule. */
  readonly permission: string | undefined
  /** The message if the import breaks the rule. */
  readonly problem: string
}

/** Checks all imports of a file: static and dynamic, values and types. */
export function checkImports(path: string, text: string): readonly CheckedImport[] {
  const file = withoutSrc(path)
  return specifiersIn(path, text).flatMap((specifier) => {
    if (!specifier.startsWith('.')) return check(packages, file, specifier)
    const imported = withoutSrc(join(dirname(path), specifier))
    return ownerIn(folders, imported) === ownerIn(folders, file) ? [] : check(folders, file, imported)
  })
}

function check(rules: Rules, file: string, imported: string): CheckedImport {
  const owner = ownerIn(rules, file)
  const allowed = rules[owner] ?? []
  const permission = allowed.find((each) => holds(each, imported))
  const problem = `${file} must not import ${imported}: ${owner} may import ${allowed.join(', ') || 'nothing'}`
  return { owner, permission, problem }
}

/** The longest path in the rules that holds a file, or else its first folder. */
const ownerIn = (rules: Rules, file: string): string =>
  Object.keys(rules)
    .filter((path) => holds(path, file))
    .reduce((a, b) => (a.length > b.length ? a : b), file.split('/', 1)[0] as string)

const holds = (path: string, file: string): boolean =>
  [path, `${path}.ts`].includes(file) || file.startsWith(`${path}/`) || (path === 'node:*' && file.startsWith('node:'))

const withoutSrc = (path: string): string => path.replace(/^src\//, '')

function specifiersIn(path: string, text: string): readonly string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    const specifier = specifierOf(node)
    if (specifier !== undefined && ts.isStringLiteralLike(specifier)) found.push(specifier.text)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest))
  return found
}

function specifierOf(node: ts.Node): ts.Node | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) return node.argument.literal
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) return node.arguments[0]
  return undefined
}
