import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Frees everything that nothing refers to. */
export async function collectGarbage(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    // A WeakRef keeps its target until the turn of the event loop in which it was read has ended.
    await nextTurn()
    collect()
  }
}
