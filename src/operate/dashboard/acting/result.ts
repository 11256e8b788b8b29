import { amount, counted } from '../page/elements.tsx'
import type { BulkAction } from './bulk-actions.ts'
import type { Act } from './selection.ts'

export const words: Record<Act, { readonly ing: string; readonly ed: string; readonly noun: string }> = {
  replay: { ing: 'Replaying', ed: 'replayed', noun: 'dead letter' },
  discard: { ing: 'Discarding', ed: 'discarded', noun: 'dead letter' },
  retry: { ing: 'Retrying', ed: 'started again', noun: 'event' },
  'stop-handler': { ing: 'Stopping', ed: 'stopped', noun: 'event' },
}

export function describeResult({ act, state, total = 0, done, gone, kept }: BulkAction): readonly string[] {
  const { ed, noun } = words[act]
  const of = done === total ? '' : `${amount(done)} of `
  const sentences = [`${of}${counted(total, noun)} ${ed}.${done > 0 ? nextAfter[act] : ''}`]
  if (gone > 0)
    sentences.push(`${counted(gone, noun)} ${act === 'stop-handler' ? 'not stopped' : 'skipped'}: ${goneBecause[act]}.`)
  for (const [reason, count] of kept) sentences.push(`${counted(count, noun)} left unchanged: ${reason}.`)
  if (state === 'stopped') sentences.push('Stopped. The rest is unchanged.')
  if (state === 'failed') sentences.push('Then the inbox became unavailable. The rest is unchanged.')
  return sentences
}

const nextAfter: Record<Act, string> = {
  replay: ' Only handlers that had not completed run again.',
  discard: '',
  retry: '',
  'stop-handler': ' A retry follows, unless that was the last attempt.',
}

const takenByOthers = 'already replayed or discarded by another user or process'

const goneBecause: Record<Act, string> = {
  replay: takenByOthers,
  discard: takenByOthers,
  retry: 'already running or handled',
  'stop-handler': 'the handler had already ended, or runs in a process that this one cannot reach',
}
