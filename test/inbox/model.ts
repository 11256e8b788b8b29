import fc from 'fast-check'
import type { AttemptResult, Inbox, InboxStats } from '../../src/index.ts'
import type { InboxSubject } from '../contract/suites/inbox.ts'
import { type Call, eventOf, openInbox, until } from '../support/inbox.ts'

/** One thing that a test does with an inbox. `at` chooses among the events that it can be done with. */
type Command =
  | { readonly does: 'accept'; readonly key: string }
  | { readonly does: 'finish'; readonly at: number; readonly as: 'done' | 'retry' | 'dead' }
  | { readonly does: 'replay' | 'discard'; readonly key: string }

const keys = Array.from({ length: 12 }, (_, index) => `${index}`)
/** Three media items, so that every media item can have a slot. */
const mediaOf = (key: string) => `media ${Number(key) % 3}`

const key = fc.constantFrom(...keys)
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constant('accept' as const), key }) },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('finish' as const),
      at: fc.nat(),
      as: fc.constantFrom('done' as const, 'retry' as const, 'dead' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constantFrom('replay' as const, 'discard' as const), key }) },
)

const results: Readonly<Record<'done' | 'retry' | 'dead', AttemptResult>> = {
  done: { status: 'done' },
  // Long enough that the next attempt is not part of the test.
  retry: { status: 'retry', delayMs: 600_000, completed: ['a'], failures: [] },
  dead: { status: 'dead', completed: ['a'], failures: [{ handler: 'b', message: 'Error: no' }] },
}

/** An inbox as it has to behave: the state of each event that was accepted. */
class Model {
  readonly #states = new Map<string, 'open' | 'done' | 'retry' | 'dead' | 'discarded'>()
  /** The events to handle, in the order of their acceptance. */
  readonly #open: string[] = []
  /** Their place among the others of their media is not promised. */
  readonly #replayed = new Set<string>()
  readonly #isOrdered: boolean

  constructor(isOrdered: boolean) {
    this.#isOrdered = isOrdered
  }

  accept(key: string): 'accepted' | 'duplicate' {
    if (this.#states.has(key)) return 'duplicate'
    this.#states.set(key, 'open')
    this.#open.push(key)
    return 'accepted'
  }

  finish(key: string, as: 'done' | 'retry' | 'dead'): void {
    this.#states.set(key, as)
    this.#open.splice(this.#open.indexOf(key), 1)
  }

  replay(key: string): boolean {
    if (this.#states.get(key) !== 'dead') return false
    this.#states.set(key, 'open')
    this.#open.push(key)
    this.#replayed.add(key)
    return true
  }

  discard(key: string): boolean {
    if (this.#states.get(key) !== 'dead') return false
    this.#states.set(key, 'discarded')
    return true
  }

  stats(): InboxStats {
    const count = (state: string) => [...this.#states.values()].filter((each) => each === state).length
    const running = this.#isOrdered ? new Set(this.#open.map(mediaOf)).size : this.#open.length
    return {
      waiting: this.#open.length - running,
      running,
      retrying: count('retry'),
      deadLetters: count('dead'),
    }
  }

  /**
   * Returns true if these events may be the ones that run: of each media item the first one, or one that was replayed.
   */
  mayRun(running: readonly string[]): boolean {
    if (!this.#isOrdered) return running.every((key) => this.#open.includes(key))
    return running.every((key) => {
      if (!this.#open.includes(key)) return false
      const rivals = this.#open.filter((other) => mediaOf(other) === mediaOf(key) && !this.#replayed.has(other))
      return this.#replayed.has(key) || rivals[0] === key
    })
  }
}

/** The subject of the contract suite, and whether it keeps the order of a media item, which it does by default. */
interface ModelSubject extends InboxSubject {
  readonly ordered?: boolean
}

/** Runs commands against a fresh inbox and the model, and compares the two after each. Throws if they differ. */
async function play(subject: ModelSubject, commands: readonly Command[]): Promise<void> {
  const { ordered = true, close } = subject
  const { inbox, calls } = openInbox(subject.inbox)
  const model = new Model(ordered)
  const running: Call[] = []
  try {
    for (const each of commands) {
      await run(each, inbox, model, running)
      const expected = model.stats()
      while (running.length < expected.running) running.push(await calls.next())
      await until(async () => JSON.stringify(sorted(await inbox.stats())) === JSON.stringify(sorted(expected)))
      const runningKeys = running.map(({ event }) => event.key)
      if (!model.mayRun(runningKeys)) throw new Error(`${runningKeys} run, out of order`)
    }
  } finally {
    calls.finishAll()
    await inbox.close({ timeoutMs: 100 })
    await close?.()
  }
}

const sorted = ({ waiting, running, retrying, deadLetters }: InboxStats) => [waiting, running, retrying, deadLetters]

async function run(command: Command, inbox: Inbox, model: Model, running: Call[]): Promise<void> {
  if (command.does === 'finish') {
    const [call] = running.splice(command.at % Math.max(1, running.length), 1)
    if (call === undefined) return
    call.finish(results[command.as])
    return model.finish(call.event.key, command.as)
  }
  const { does, key } = command
  const answer = does === 'accept' ? await inbox.accept(eventOf(key, mediaOf(key))) : await inbox.deadLetters[does](key)
  const expected = model[does](key)
  if (answer !== expected) throw new Error(`${does} ${key}: ${answer}, and not ${expected}`)
}

/**
 * Checks an inbox against the model with random commands. A failure is printed with the fewest commands that show it.
 * @param options `endOnFailure`: does not look for fewer commands
 */
export async function checkAgainstModel(
  factory: () => ModelSubject | Promise<ModelSubject>,
  runs: number,
  options: { readonly endOnFailure?: boolean } = {},
) {
  const commands = fc.array(command, { minLength: 5, maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(commands, async (given) => play(await factory(), given)),
    { numRuns: runs, ...options },
  )
}
