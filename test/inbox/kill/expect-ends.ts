import type { Receiver } from '../../../src/index.ts'

/** The time in which an event has to follow, in ms. */
export const withinMs = 800

/**
 * Makes a receiver expect the end of each encoding.
 * @param report handles what is overdue
 */
export function expectEnds<Additions>(
  receiver: Receiver<Additions>,
  report: (mediaId: string, context: Additions & { readonly attempt: number }) => Promise<void>,
  within = withinMs,
): void {
  const rule = { then: 'encoding.finished', within, name: 'encoded' } as const
  receiver.expect('file.received', rule, ({ mediaId }, context) => report(mediaId, context))
}
