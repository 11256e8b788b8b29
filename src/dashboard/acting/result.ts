import type { BulkAction } from './bulk-actions.ts'
import type { Act } from './selection.ts'

/** The words of each action. */
export const words: Record<Act, { readonly ing: string; readonly ed: string; readonly what: string }> = {
  replay: { ing: 'Replaying', ed: 'replayed', what: 'dead letter' },
  discard: { ing: 'Discarding', ed: 'discarded', what: 'dead letter' },
  retry: { ing: 'Retrying', ed: 'started again', what: 'event' },
  'stop-handler': { ing: 'Stopping', ed: 'stopped', what: 'event' },
}

/** Writes a number with its thing: `1 dead letter`, `1,200 dead letters`. */
export const counted = (count: number, thing: string): string =>
  `${count.toLocaleString('en')} ${thing}${count === 1 ? '' : 's'}`

/** Describes in sentences what a bulk action has done. */
export function resultOf({ act, state, total = 0, done, gone, kept }: BulkAction): readonly string[] {
  const { ed, what } = words[act]
  const of = done === total ? '' : ` of ${total.toLocaleString('en')}`
  const next = nextAfter[act]
  const sentences = [
    `${done.toLocaleString('en')}${of} ${total === 1 ? what : `${what}s`} ${ed}.${done > 0 ? next : ''}`,
  ]
  if (gone > 0)
    sentences.push(
      `${counted(gone, what)} ${act === 'stop-handler' ? 'left as before' : 'no longer existed'}: ${goneBecause[act]}.`,
    )
  for (const [reason, count] of kept) sentences.push(`${counted(count, what)} stayed as before: ${reason}.`)
  if (state === 'stopped') sentences.push('It was stopped. The rest is as before.')
  if (state === 'failed') sentences.push('The inbox then became unavailable. The rest is as before.')
  return sentences
}

const nextAfter: Record<Act, string> = {
  replay: ' The handlers that had not completed run again.',
  discard: '',
  retry: '',
  'stop-handler': ' It is retried by its schedule, or becomes a dead letter.',
}

const goneBecause: Record<Act, string> = {
  replay: 'another user or process has replayed or discarded it',
  discard: 'another user or process has replayed or discarded it',
  retry: 'its attempt has started meanwhile',
  'stop-handler': 'its handler has ended meanwhile, or runs in a process that cannot be reached from here',
}
