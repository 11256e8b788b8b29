import { defineStore } from '../../src/index.ts'
import { type AdapterName, mounts } from '../support/mounts.ts'
import { silent } from '../support/silent.ts'
import { verify } from './sending.ts'
import { ours } from './subject.ts'

/** The messages between the test and the process that it kills. */
export type FromChild =
  | { readonly ask: number; readonly method: 'claim' | 'renew' | 'complete' | 'release'; readonly parameters: never }
  | { readonly listening: AdapterName; readonly url: string }
  | { readonly handling: string }
export type ToChild = { readonly ask: number; readonly answer: unknown }

const waiting = new Map<number, (answer: unknown) => void>()
let asked = 0

const tell = (message: object) => process.send?.(message)

process.on('message', ({ ask, answer }: ToChild) => waiting.get(ask)?.(answer))
// The process also ends when its parent ends.
process.on('disconnect', () => process.exit(1))

const ask = <Answer>(method: string, ...parameters: unknown[]): Promise<Answer> => {
  const id = ++asked
  return new Promise((resolve) => {
    waiting.set(id, resolve as (answer: unknown) => void)
    tell({ ask: id, method, parameters })
  })
}

/** The store in the test's process. */
const store = defineStore({
  claim: (...parameters) => ask('claim', ...parameters),
  renew: (...parameters) => ask('renew', ...parameters),
  complete: (...parameters) => ask('complete', ...parameters),
  release: (...parameters) => ask('release', ...parameters),
})

for (const [adapter, mount] of Object.entries(mounts)) {
  const handle = ({ mediaId }: { mediaId: string }) => {
    tell({ handling: mediaId })
    // The handler never ends.
    return new Promise(() => {})
  }
  const { url } = await ours(mount)({ verify, handle, store, logger: silent })
  tell({ listening: adapter, url })
}
