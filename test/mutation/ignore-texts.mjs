// Functions of ours that make an error of a text.
const errorMakers = ['invalid', 'bodyConsumed']
const loggerMethods = ['debug', 'info', 'warn', 'error']

/** @returns {boolean} `true` for a text that only people read: the message of an error, or of a line of the log. */
function isForPeople({ node, parent, key }) {
  if (key !== 'arguments' || !['StringLiteral', 'TemplateLiteral'].includes(node.type)) return false
  const { callee, arguments: [first] = [] } = parent
  if (parent.type === 'NewExpression')
    return callee.name === 'WebhookError' ? node !== first : /(Error|Closing)$/.test(callee.name)
  if (errorMakers.includes(callee.name)) return true
  return callee.type === 'MemberExpression' && loggerMethods.includes(callee.property.name)
}

/** Tells Stryker to leave such texts alone: a test of each would repeat it, word for word. */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'texts',
    value: {
      shouldIgnore: (path) =>
        isForPeople({ node: path.node, parent: path.parent, key: path.listKey }) ? 'a text for people' : undefined,
    },
  },
]
