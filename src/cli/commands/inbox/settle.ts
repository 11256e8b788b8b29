import { setTimeout as pause } from 'node:timers/promises'
import { ReplayedEvents } from '../../../inbox/operations/replay-outcome.ts'
import { UsageError } from '../../shared/flags.ts'
import { shellQuoted } from '../../shared/text.ts'
import type { ActionContext, InboxAction } from './action.ts'
import { eachDeadLetter } from './each-dead-letter.ts'
import type { InboxInput } from './flags.ts'
import { counted } from './print.ts'
import { recordOperation } from './record-operation.ts'

const settle =
  (act: 'replay' | 'discard', past: 'replayed' | 'discarded', then = '') =>
  async (context: ActionContext): Promise<number> => {
    const { inbox, values, words, screen } = context
    const { all, json, perSecond, type, since } = values
    const keys = all ? await inbox.deadLetters.keys({ type, since }) : [...new Set(words)]
    const { done, missing } = await eachDeadLetter(
      { keys, act: (some) => inbox.deadLetters[`${act}Many`](some), past, perSecond },
      screen,
    )
    if (done.length > 0) await recordOperation(context, { act, keys: done })
    // With --all, a missing key is fine: somebody else has just replayed or discarded it.
    const unknown = all ? [] : missing
    if (json) screen.json({ [past]: done, missing: unknown })
    else screen.print(`${counted(done.length, 'dead letter')} ${past}${done.length > 0 ? then : ''}`)
    if (act === 'replay' && all && !json && done.length > 0) screen.print(await outcomeText(context, done))
    for (const key of unknown) screen.note(`no dead letter has the key ${shellQuoted(key)}`)
    return unknown.length === 0 ? 0 : 1
  }

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
  run: settle('replay', 'replayed', replayed),
}

export const discard: InboxAction = {
  help: ['discard <key…|--all>', 'deletes dead letters permanently'],
  flags: ['all', 'type', 'since', 'yes', 'reason'],
  takes: 'keys',
  run: settle('discard', 'discarded'),
}
