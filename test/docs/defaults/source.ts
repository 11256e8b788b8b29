import { fileURLToPath } from 'node:url'
import ts from 'typescript'

// Reads the defaults of options in src/ and adapters/: those that docstrings name, and those that the code sets.

const root = fileURLToPath(new URL('../../../', import.meta.url))
const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
// The flags of the command line have defaults of their own.
const paths = ts.sys.readDirectory(root, ['.ts', '.tsx'], ['src/cli'], ['src/**/*', 'adapters/**/*'])
const program = ts.createProgram(paths, ts.parseJsonConfigFileContent(config, ts.sys, root).options)
const checker = program.getTypeChecker()

export interface Option {
  /** Such as `ReceiverOptions.ack`, or `HmacSignatureOptions.timestamp.header` in the type of another option. */
  readonly name: string
  /** The default that its docstring names. Words are `undefined`. */
  readonly named: unknown
  /** The defaults that the code sets: values, or text without a literal type. */
  readonly inCode: ReadonlySet<unknown>
}

function* nodesIn(node: ts.Node): Generator<ts.Node> {
  const children: ts.Node[] = []
  ts.forEachChild(node, (child) => void children.push(child))
  yield node
  for (const child of children) yield* nodesIn(child)
}

const nodes = paths.flatMap((path) => [...nodesIn(program.getSourceFile(path) as ts.SourceFile)])
const signatures = nodes.filter(ts.isPropertySignature)

function nameOf({ name, parent }: ts.PropertySignature): string {
  if (ts.isInterfaceDeclaration(parent)) return `${parent.name.text}.${name.getText()}`
  return ts.isPropertySignature(parent.parent) ? `${nameOf(parent.parent)}.${name.getText()}` : name.getText()
}

function namedBy(signature: ts.PropertySignature): unknown {
  const tag = ts.getJSDocTags(signature).find(({ tagName }) => tagName.text === 'defaultValue')
  const text = ts.getTextOfJSDocComment(tag?.comment) ?? ''
  if (text === 'true' || text === 'false') return text === 'true'
  const { number, quoted } = /^(?<number>\d[\d_]*)|^['`](?<quoted>[^'`]+)['`]$/.exec(text)?.groups ?? {}
  return number === undefined ? quoted : Number(number.replaceAll('_', ''))
}

const isOtherwise = (node: ts.Node): node is ts.BinaryExpression =>
  ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken

function readValue(node: ts.Expression): unknown {
  if (isOtherwise(node)) return readValue(node.right)
  const member = ts.isPropertyAccessExpression(node) && checker.getSymbolAtLocation(node)?.valueDeclaration
  if (member && ts.isPropertyAssignment(member)) return readValue(member.initializer)
  const type = checker.getTypeAtLocation(node)
  if (type.isLiteral()) return type.value
  return type.flags & ts.TypeFlags.BooleanLiteral ? checker.typeToString(type) === 'true' : node.getText()
}

const inCode = new Map<ts.Node, Set<unknown>>(signatures.map((signature) => [signature, new Set()]))

function add(declarations: readonly ts.Node[] | undefined, value: ts.Expression | undefined): void {
  for (const declaration of declarations ?? []) if (value !== undefined) inCode.get(declaration)?.add(readValue(value))
}

/** `{ ack = 'accepted' }` */
function addDestructured({ name, propertyName, parent, initializer }: ts.BindingElement): void {
  if (!ts.isObjectBindingPattern(parent)) return
  const type = checker.getTypeAtLocation(parent)
  const types = type.isUnion() ? type.types : [type]
  for (const each of types) add(each.getProperty((propertyName ?? name).getText())?.declarations, initializer)
}

/** `timeoutMs: wholeNumber().default(10_000)`: the schema of zod stands in the file of the interface. */
function addOfSchema({ expression, arguments: [value], parent }: ts.CallExpression): void {
  if (!ts.isPropertyAccessExpression(expression) || expression.name.text !== 'default') return
  if (!ts.isPropertyAssignment(parent)) return
  const isSet = (signature: ts.PropertySignature) =>
    signature.getSourceFile() === parent.getSourceFile() && signature.name.getText() === parent.name.getText()
  add(signatures.filter(isSet), value)
}

for (const node of nodes) {
  if (ts.isBindingElement(node)) addDestructured(node)
  // `options.ack ?? 'accepted'`
  if (isOtherwise(node) && ts.isPropertyAccessExpression(node.left))
    add(checker.getSymbolAtLocation(node.left.name)?.declarations, node.right)
  if (ts.isCallExpression(node)) addOfSchema(node)
}

export const options: readonly Option[] = signatures.map((signature) => ({
  name: nameOf(signature),
  named: namedBy(signature),
  inCode: inCode.get(signature) ?? new Set(),
}))
