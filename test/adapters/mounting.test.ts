import { expect, test } from 'vitest'
import { expressHandler } from '../../adapters/express.ts'
import { fetchHandler } from '../../adapters/fetch.ts'
import { honoHandler } from '../../adapters/hono.ts'
import { koaHandler } from '../../adapters/koa.ts'
import { nodeHandler } from '../../adapters/node.ts'
import { createReceiver } from '../../src/index.ts'
import { untyped } from '../support/untyped.ts'
import { url, watchedReceiver } from './receivers.ts'

const adapters: [string, (receiver: never) => unknown][] = [
  ['expressHandler', expressHandler],
  ['koaHandler', koaHandler],
  ['nodeHandler', nodeHandler],
  ['fetchHandler', fetchHandler],
  ['honoHandler', honoHandler],
]

test.each(adapters)('%s throws at mount when it is given no receiver, and names the cause', (name, mount) => {
  const message = `${name}: give it a receiver; are the parentheses of createReceiver() missing?`
  for (const notReceiver of [undefined, null, createReceiver, {}, { receive: 'text' }, 'text', Promise.resolve({})])
    expect(() => mount(untyped(notReceiver))).toThrow(expect.objectContaining({ code: 'invalid_option', message }))
})

test.each([
  ['fetchHandler: there is no option waituntil; there are waitUntil', { waituntil: () => {} }],
  ['fetchHandler: waitUntil must be a function', { waitUntil: true }],
])('%s', (message, options) => {
  const { receiver } = watchedReceiver(url)
  const error = expect.objectContaining({ code: 'invalid_option', message })
  expect(() => fetchHandler(receiver, untyped(options))).toThrow(error)
})
