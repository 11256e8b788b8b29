import fc from 'fast-check'
import type { Claim, StoreSteps } from '../../src/index.ts'

/** The steps of a store that is checked, with its clock. */
export interface ModelSubject {
  readonly store: StoreSteps
  /** Lets time pass for the store, in ms. */
  advance(ms: number): void | Promise<void>
  /** Makes the store's client send each command twice, as after a lost answer. Leave it out if there is no client. */
  repeat?(isRepeated: boolean): void
}

/** The settings of the stores, which the model knows. Times are in ms, and so long that real time does not count. */
const leaseMs = 1_050_000
export const ttlMs = 5_050_000

type Step = 'claim' | 'renew' | 'complete' | 'release'
type Command =
  | { readonly does: Step; readonly key: string; readonly owner: string; readonly isRepeated: boolean }
  | { readonly does: 'wait'; readonly ms: number }

const step: fc.Arbitrary<Command> = fc.record({
  does: fc.constantFrom<Step[]>('claim', 'claim', 'renew', 'complete', 'complete', 'release'),
  key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  owner: fc.constantFrom('one', 'two', 'three'),
  isRepeated: fc.boolean(),
})
// No sum of these is the time of a lease, or the time for which keys are remembered.
const wait: fc.Arbitrary<Command> = fc.record({
  does: fc.constant('wait' as const),
  ms: fc.constantFrom(400_000, 700_000, 1_100_000, 4_000_000),
})
const command = fc.oneof({ weight: 5, arbitrary: step }, { weight: 1, arbitrary: wait })

interface Record {
  readonly owner: string
  readonly expiresAt: number
}

/** A store as it has to behave: the last lease of each key, and the finished keys, the one seen least recently first. */
class Model {
  now = 0
  readonly #leases = new Map<string, Record>()
  readonly #finished = new Map<string, Record>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  /**
   * Returns the right answers. After a lease has run out, both answers are right until an owner takes the key.
   */
  answers(does: Step, key: string, owner: string): readonly (Claim | boolean)[] {
    const finished = this.#current(this.#finished, key)
    if (does === 'claim') return [finished ? 'done' : this.#current(this.#leases, key) ? 'in-progress' : 'claimed']
    if (finished) return [does === 'complete' && finished.owner === owner]
    const lease = this.#leases.get(key)
    if (lease === undefined) return [does !== 'release']
    const isOwn = lease.owner === owner
    if (this.#current(this.#leases, key)) return [isOwn]
    return does === 'release' ? (isOwn ? [true, false] : [false]) : isOwn ? [true] : [true, false]
  }

  #current(records: ReadonlyMap<string, Record>, key: string): Record | undefined {
    const record = records.get(key)
    return record !== undefined && record.expiresAt > this.now ? record : undefined
  }

  /** Follows the store. */
  apply(does: Step, key: string, owner: string, answer: Claim | boolean): void {
    const finished = this.#finished.get(key)
    if (does === 'claim' && finished) this.#finished.delete(key)
    if (answer === 'done' && finished) this.#finished.set(key, finished)
    if (answer === 'claimed' || (does === 'renew' && answer === true))
      this.#leases.set(key, { owner, expiresAt: this.now + leaseMs })
    if (does === 'release' && answer === true) this.#leases.delete(key)
    if (does !== 'complete' || answer === false) return
    this.#leases.delete(key)
    this.#finished.delete(key)
    this.#finished.set(key, { owner, expiresAt: this.now + ttlMs })
    for (const oldest of this.#finished.keys()) if (this.#finished.size > this.#max) this.#finished.delete(oldest)
  }
}

/** Runs commands against a fresh store and the model, and compares the answers. Throws at the first wrong answer. */
async function play(
  { store, advance, repeat }: ModelSubject,
  commands: readonly Command[],
  max: number,
): Promise<void> {
  const model = new Model(max)
  for (const each of commands) {
    if (each.does === 'wait') {
      model.now += each.ms
      await advance(each.ms)
      continue
    }
    const { does, key, owner, isRepeated } = each
    const right = model.answers(does, key, owner)
    // The first of two releases succeeds, and the second one is answered.
    repeat?.(isRepeated && does !== 'release')
    const answer = await (does === 'claim' || does === 'renew'
      ? store[does](key, owner, leaseMs)
      : store[does](key, owner))
    if (!right.includes(answer)) throw new Error(`${does} ${key} by ${owner}: ${answer}, and not ${right.join(' or ')}`)
    model.apply(does, key, owner, answer)
  }
}

/**
 * Checks a store against the model with random commands. A failure is printed with its seed and the fewest commands that
 * show it.
 * @param options `max`: the number of finished keys that the store remembers
 */
export async function checkAgainstModel(
  factory: () => ModelSubject | Promise<ModelSubject>,
  { runs, max = Number.POSITIVE_INFINITY }: { readonly runs: number; readonly max?: number },
) {
  const commands = fc.array(command, { minLength: 5, maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(commands, async (given) => play(await factory(), given, max)),
    { numRuns: runs },
  )
}
