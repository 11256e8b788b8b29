import { expect } from 'vitest'
import type { AttemptResult, InboxDefinition } from '../../../src/inbox/inbox.ts'
import type { InboxStats } from '../../../src/inbox/reading.ts'
import { eventOf, openInbox } from '../../support/inbox.ts'

type Opened = ReturnType<typeof openInbox>

/** Opens an inbox while a function runs. */
export async function withOpen<Result>(definition: InboxDefinition, run: (opened: Opened) => Promise<Result>) {
  const opened = openInbox(definition)
  try {
    return await run(opened)
  } finally {
    opened.calls.finishAll()
    await opened.inbox.close({ timeoutMs: 1_000 })
  }
}

/** Reads a number of the inbox until it has been the same for so many reads, one every 50 ms. */
async function settled(
  { inbox }: Pick<Opened, 'inbox'>,
  name: Exclude<keyof InboxStats, 'oldestWaitingAt' | 'expected'>,
  equalReads = 6,
): Promise<number> {
  let [value, reads] = [-1, 0]
  while (reads < equalReads) {
    const { [name]: now } = await inbox.stats()
    reads = now === value ? reads + 1 : 0
    value = now
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return value
}

const batch = 250

/** Accepts a batch of new events, each of a media item of its own. Returns the number of those that it accepted. */
async function acceptBatch({ inbox }: Pick<Opened, 'inbox'>, size = batch): Promise<number> {
  const events = Array.from({ length: size }, () => eventOf(crypto.randomUUID()))
  // An inbox that is full answers, or throws.
  const acceptances = await Promise.allSettled(events.map(async (event) => inbox.accept(event)))
  return acceptances.filter((each) => each.status === 'fulfilled' && each.value === 'accepted').length
}

/** Observes how many events run at a time. */
export const concurrencyOf = (definition: InboxDefinition): Promise<number> =>
  withOpen(definition, async (opened) => {
    await acceptBatch(opened)
    return settled(opened, 'running')
  })

/** Observes how many events may wait. */
export const maxWaitingOf = (definition: InboxDefinition): Promise<number> =>
  withOpen(definition, async (opened) => {
    let accepted = await acceptBatch(opened)
    const running = await settled(opened, 'running')
    for (let taken = batch; taken === batch && accepted < 30_000; accepted += taken) taken = await acceptBatch(opened)
    return accepted - running
  })

/** Observes how many dead letters are kept, of more than any inbox keeps. */
export async function maxDeadLettersOf(definition: InboxDefinition): Promise<number> {
  const dead: AttemptResult = { status: 'dead', completed: [], failures: [] }
  let [accepted, dropped] = [0, 0]
  const error = (_: object, message: string) => {
    if (message.startsWith('a dead letter was dropped')) dropped++
  }
  const logger = { debug() {}, info() {}, warn() {}, error }
  const parse = (): never => {
    throw new Error('nothing is unreadable here')
  }
  const inbox = definition.open({
    handle: async () => dead,
    handlersOf: () => [],
    handlers: () => [],
    parse,
    logger,
    observe() {},
  })
  try {
    while (accepted < 11_000) {
      accepted += await acceptBatch({ inbox })
      // Each of them becomes a dead letter before the next ones are accepted.
      while ((await inbox.stats()).waiting > 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    // An object cleans up when something is written, every 10 s.
    while (dropped === 0) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      if (dropped === 0) accepted += await acceptBatch({ inbox })
    }
    const kept = await settled({ inbox }, 'deadLetters', 20)
    expect(dropped).toBe(accepted - kept)
    return kept
  } finally {
    await inbox.close({ timeoutMs: 1_000 })
  }
}
