import ts from 'typescript'

/** What is measured, and the most that is allowed. */
export const limits = {
  /** Own and inherited ones of an exported interface, if most of them are functions. */
  'members of a port': 15,
  'lines of a class': 200,
  /**
   * Nested functions included, except those with a name of their own in an object, a class or a call, such as
   * `{ close() {} }` and `test('closes', () => {})`. They are measured by themselves.
   */
  'lines of a function': 60,
  'parameters of a function': 4,
}

export type Kind = keyof typeof limits

export interface Measurement {
  readonly kind: Kind
  /** File and path inside it, such as `src/inbox/sql/lane-runner.ts LaneRunner.add`. */
  readonly name: string
  readonly size: number
}

/** Measures source files, given as paths with their text. */
export function measure(texts: Readonly<Record<string, string>>): readonly Measurement[] {
  const files = Object.entries(texts).map(([path, text]) =>
    ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true),
  )
  const interfaces = new Map(files.flatMap((file) => file.statements.filter(ts.isInterfaceDeclaration).map(byName)))
  return files.flatMap((file) => {
    const found: Measurement[] = []
    const visit = (node: ts.Node, outer: readonly string[]): void => {
      const own = nameOf(node)
      const path = own === undefined ? outer : [...outer, own]
      const name = `${file.fileName} ${path.join('.')}`
      for (const [kind, size] of sizesOf(node, interfaces)) found.push({ kind, name, size })
      ts.forEachChild(node, (child) => visit(child, path))
    }
    visit(file, [])
    return found
  })
}

type Interfaces = ReadonlyMap<string, ts.InterfaceDeclaration>

const byName = (each: ts.InterfaceDeclaration) => [each.name.text, each] as const

function sizesOf(node: ts.Node, interfaces: Interfaces): readonly (readonly [Kind, number])[] {
  if (ts.isClassLike(node)) return [['lines of a class', linesOf(node)]]
  if (isFunction(node)) {
    const lines = linesOf(node) - sum(measuredApart(node).map(linesOf))
    return [
      ['lines of a function', lines],
      ['parameters of a function', node.parameters.length],
    ]
  }
  if (ts.isInterfaceDeclaration(node) && ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Export) {
    const members = membersOf(node, interfaces)
    const functions = [...members.values()].filter(isFunctionMember)
    if (functions.length > members.size / 2) return [['members of a port', members.size]]
  }
  return []
}

const isFunction = (node: ts.Node): node is ts.FunctionLikeDeclaration =>
  ts.isFunctionLike(node) && 'body' in node && node.body !== undefined

/** Functions inside a node that have a name of their own. */
function measuredApart(node: ts.Node): readonly ts.Node[] {
  const found: ts.Node[] = []
  const visit = (child: ts.Node): void => {
    if (isFunction(child) && hasOwnName(child)) found.push(child)
    else ts.forEachChild(child, visit)
  }
  ts.forEachChild(node, visit)
  return found
}

const hasOwnName = (node: ts.FunctionLikeDeclaration): boolean =>
  ts.isClassElement(node) || ts.isObjectLiteralElement(node) || isValueOfMember(node) || titleOf(node) !== undefined

const isValueOfMember = ({ parent }: ts.Node): boolean =>
  ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent)

function linesOf(node: ts.Node): number {
  const file = node.getSourceFile()
  const lineOf = (position: number) => file.getLineAndCharacterOfPosition(position).line
  return lineOf(node.end) - lineOf(node.getStart(file)) + 1
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

function nameOf(node: ts.Node): string | undefined {
  if (ts.isConstructorDeclaration(node)) return 'constructor'
  if (ts.isVariableDeclaration(node) || ts.isPropertyAssignment(node)) return node.name.getText()
  if (isFunction(node) || ts.isClassLike(node) || ts.isPropertyDeclaration(node) || ts.isInterfaceDeclaration(node))
    return node.name?.getText() ?? titleOf(node)
  return undefined
}

/** The text before a function in the arguments of a call, such as the title of a test. */
function titleOf(node: ts.Node): string | undefined {
  if (!ts.isCallExpression(node.parent)) return undefined
  const before = node.parent.arguments[node.parent.arguments.indexOf(node as ts.Expression) - 1]
  return before !== undefined && ts.isStringLiteralLike(before) ? before.text : undefined
}

/** Members by name: overloads count once. */
function membersOf(port: ts.InterfaceDeclaration, interfaces: Interfaces): ReadonlyMap<string, ts.TypeElement> {
  const bases = port.heritageClauses?.flatMap(({ types }) => types.map(({ expression }) => expression.getText())) ?? []
  const inherited = bases
    .flatMap((name) => interfaces.get(name) ?? [])
    .flatMap((base) => [...membersOf(base, interfaces)])
  const own = port.members.map((member) => [member.name?.getText() ?? '', member] as const)
  return new Map([...inherited, ...own])
}

const isFunctionMember = (member: ts.TypeElement): boolean =>
  ts.isMethodSignature(member) ||
  (ts.isPropertySignature(member) && member.type !== undefined && ts.isFunctionTypeNode(member.type))
