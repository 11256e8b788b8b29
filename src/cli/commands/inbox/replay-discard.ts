import { setTimeout as pause } from 'node:timers/promises'
import { type Acted, type ActOnBatch, actOnEach } from '../../../inbox/operations/act-on-each.ts'
import { ReplayedEvents } from '../../../inbox/operations/replay-outcome.ts'
import { sleep } from '../../../internal/timers.ts'
import { UsageError } from '../../shared/flags.ts'
import { plain, shellQuoted } from '../../shared/text.ts'
import type { ActionContext, InboxAction } from './action.ts'
import type { InboxInput } from './flags.ts'
import { counted } from './print.ts'
import { recordOperation } from './record-operation.ts'

/** Dead letters per commit. A server with the same SQLite file waits for each commit. */
const batchSize = 100

/** Delay after each commit (ms), for that server to commit, and for Ctrl-C. */
const delayMs = 10

const past = { replay: 'replayed', discard: 'discarded' } as const

const actOnDeadLetters =
  (act: keyof typeof past, then = '') =>
  async (context: ActionContext): Promise<number> => {
    const { inbox, values, words, screen } = context
    const { all, json, type, since } = values
    const keys = all ? await inbox.deadLetters.keys({ type, since }) : [...new Set(words)]
    const { done, others } = await actOn(context, act, keys)
    // With --all, a missing key is fine: somebody else has just replayed or discarded it.
    const left = all ? others.filter(({ outcome }) => outcome === 'refused') : others
    if (json) screen.json(report(act, done, left))
    else screen.print(`${counted(done.length, 'dead letter')} ${past[act]}${done.length > 0 ? then : ''}`)
    if (act === 'replay' && all && !json && done.length > 0) screen.print(await outcomeText(context, done))
    for (const each of left) screen.note(whyLeft(each))
    return left.length === 0 ? 0 : 1
  }

/** Acts in batches with a progress line, and records what it has done, also if it fails or is interrupted. */
async function actOn(context: ActionContext, act: keyof typeof past, keys: readonly string[]) {
  const { inbox, values, screen } = context
  const { perSecond } = values
  const { signal } = screen
  const done: string[] = []
  const others: Acted[] = []
  const actOnBatch: ActOnBatch = async (batch, acted) => {
    for (const key of await inbox.deadLetters[`${act}Many`](batch)) acted.add(key)
    screen.progress(`${done.length + acted.size} of ${keys.length} ${past[act]}`)
    await sleep(delayMs)
  }
  const isPartial = () => done.length + others.length < keys.length
  try {
    for await (const acted of actOnEach(keys, actOnBatch, { perSecond, batchSize, signal }))
      if (acted.outcome === 'done') done.push(acted.key)
      else others.push(acted)
    if (isPartial()) signal.throwIfAborted()
  } finally {
    screen.progress(undefined)
    const cause = signal.aborted ? 'interrupted: ' : ''
    if (isPartial()) screen.note(`${cause}${done.length} of ${keys.length} ${past[act]} so far`)
    if (done.length > 0) await recordOperation(context, { act, keys: done })
  }
  return { done, others }
}

/** `missing`: keys without a dead letter. `refused`, if any: those that stay dead letters, with the reason. */
function report(act: keyof typeof past, done: readonly string[], left: readonly Acted[]): object {
  const refused = left.flatMap((each) => (each.outcome === 'refused' ? { key: each.key, reason: each.reason } : []))
  const missing = left.flatMap(({ key, outcome }) => (outcome === 'gone' ? key : []))
  return { [past[act]]: done, missing, ...(refused.length > 0 && { refused }) }
}

const whyLeft = (acted: Acted): string =>
  acted.outcome === 'refused'
    ? `${shellQuoted(acted.key)} stays a dead letter: ${plain(acted.reason)}`
    : `no dead letter has the key ${shellQuoted(acted.key)}`

/** Stops following replayed events after this time without news (ms). No server may be running. */
const patienceMs = 2_000

/** Follows replayed events until all have ended, or nothing happens for a while. */
async function outcomeText({ inbox, screen }: ActionContext, keys: readonly string[]): Promise<string> {
  const replayed = new ReplayedEvents(inbox)
  for (const key of keys) replayed.add(key)
  let outcome = await replayed.count()
  let lastNewsAt = performance.now()
  while (outcome.open > 0 && performance.now() - lastNewsAt < patienceMs) {
    await pause(100, undefined, { signal: screen.signal })
    const { open } = outcome
    outcome = await replayed.count()
    if (outcome.open < open) lastNewsAt = performance.now()
  }
  const { handled, dead, gone, open } = outcome
  return `So far ${handled} handled, ${dead} failed again, ${open} open${gone === 0 ? '' : `, ${gone} no longer known`}.`
}

/** @throws UsageError for keys and flags that conflict */
export function checkDeadLetterArguments(name: string, keys: readonly string[], values: InboxInput['values']): void {
  const { all, type, since, yes } = values
  if (keys.length > 0 === (all === true)) throw new UsageError(`${name} takes either keys or --all`)
  if (!all && (type !== undefined || since !== undefined)) throw new UsageError('--type and --since go with --all')
  if (name === 'discard' && all && !yes)
    throw new UsageError('discard --all deletes all dead letters permanently: add --yes to confirm')
}

const replayed =
  ': handled within a second if a server has the inbox open, otherwise when one opens it.\n' +
  "An unreadable delivery that still cannot be parsed stays a dead letter. The server's log says why."

export const replay: InboxAction = {
  help: ['replay <key…|--all>', 'runs the unfinished handlers of dead letters again, with fresh attempts'],
  flags: ['all', 'type', 'since', 'perSecond', 'reason'],
  takes: 'keys',
  run: actOnDeadLetters('replay', replayed),
}

export const discard: InboxAction = {
  help: ['discard <key…|--all>', 'deletes dead letters permanently'],
  flags: ['all', 'type', 'since', 'yes', 'reason'],
  takes: 'keys',
  run: actOnDeadLetters('discard'),
}
