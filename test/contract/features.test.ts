import { expect, test } from 'vitest'
import { lruStore } from '../../src/idempotency/lru.ts'
import { memoryInbox } from '../../src/inbox/memory.ts'
import type { Runner } from '../../src/testing/runner.ts'
import { storeContract } from '../../src/testing/store-contract.ts'
import { everyFeature } from './every-feature.ts'
import { failuresOf } from './failures-of.ts'
import { inboxContract } from './suites/inbox.ts'

const order = 'hands over the events of one media item one after another, in order'
const transaction = 'commits what a transaction wrote, and resolves with its result'
const outage = 'throws during an outage, and never claims an unknown key'

/** Lists the tests of a suite that run, and those that are reported as skipped. */
function registered(suite: (runner: Runner) => void) {
  const [run, skipped]: [string[], string[]] = [[], []]
  suite({
    test: Object.assign((name: string) => run.push(name), { skip: (name: string) => skipped.push(name) }),
    expect,
  })
  return { run, skipped }
}

const every = { ...everyFeature, handlesNow: true }
const store = () => ({ store: lruStore(), advance() {} })
const inbox = () => ({ inbox: memoryInbox() })
const transactions = { write() {}, texts: () => [] }

test('The suite of inboxes skips the tests of features that an inbox does not have, and says why', () => {
  const all = registered((runner) => inboxContract(inbox, runner, every))
  expect(all.run).toEqual(expect.arrayContaining([order, transaction]))
  expect(all.skipped).toEqual([])

  const some = registered((runner) => inboxContract(inbox, runner, { ordered: false }))
  expect(some.skipped).toContain(`${order} (its features do not have ordered: true)`)
  expect(some.skipped).toContain(`${transaction} (its features do not have transactions: true)`)
  expect(some.run).not.toEqual(expect.arrayContaining([order]))
  expect(some.run.length + some.skipped.length).toBe(all.run.length)

  const handingOver = registered((runner) => inboxContract(inbox, runner, { ...every, keepsEvents: false }))
  expect(handingOver.skipped).toContain('discards a dead letter (its features do not have keepsEvents: true)')
  expect(handingOver.skipped).toContain('counts its events (its features do not have keepsEvents: true)')
  expect(handingOver.run.length + handingOver.skipped.length).toBe(all.run.length)
})

test('The suite of stores skips the test of an outage for a store without a connection, and says why', () => {
  const all = registered((runner) => storeContract(store, runner))
  expect(all.run).toContain(outage)
  expect(all.skipped).toEqual([])
  const some = registered((runner) => storeContract(store, runner, { connection: false }))
  expect(some.skipped).toEqual([`${outage} (its features have connection: false)`])
  expect(some.run).toEqual(all.run.filter((name) => name !== outage))
})

test.each<[string, (runner: Runner) => void]>([
  ['lacks what its features promise', (runner) => inboxContract(inbox, runner, { transactions: true, reads: true })],
  ['has what its features lack', (runner) => inboxContract(() => ({ ...inbox(), transactions }), runner)],
])('An inbox whose subject %s fails each test', async (_, suite) => {
  const message = 'give the subject `transactions` and the suite `{ transactions: true }`, or neither'
  for (const name of registered(suite).run.slice(0, 3))
    expect(await failuresOf(suite, name)).toEqual({ [name]: message })
})

test.each<[string, (runner: Runner) => void]>([
  ['lacks what its features promise', (runner) => storeContract(store, runner)],
  [
    'has what its features lack',
    (runner) => storeContract(() => ({ ...store(), breakConnection() {} }), runner, { connection: false }),
  ],
])('A store whose subject %s fails each test', async (_, suite) => {
  const message = 'give the subject `breakConnection`, or the suite `{ connection: false }`'
  for (const name of registered(suite).run.slice(0, 3))
    expect(await failuresOf(suite, name)).toEqual({ [name]: message })
})
