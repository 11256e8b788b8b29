import { overdueType } from '../../src/handlers/expectations.ts'
import type { MediaEvent } from '../../src/index.ts'

/** Returns the number of an event: that of its title, unless it reports an expectation. */
export function numberOf(event: MediaEvent): number {
  const number = Number(event.title?.split(' ')[1])
  return (event.type as string) === overdueType ? overdueNumber(number) : number
}

/** An event that reports an expectation has a number of its own, which follows from that of the event that began it. */
export const overdueNumber = (begun: number): number => begun + firstOverdue

/** Returns `true` for the number of an event that reports an expectation. */
export const isOverdue = (number: number): boolean => number >= firstOverdue

/** Returns the number of the event that was sent: the event itself, or the one that began what is overdue. */
export const sentNumber = (number: number): number => number % firstOverdue

const firstOverdue = 1_000_000

/** The time at which an event is emitted, by the sender's clock: events are emitted in the order of their numbers. */
export const emittedAt = (number: number): Date => new Date(firstEmittedAt + number)

/** Returns the number of the event that was emitted at a time. */
export const numberAt = (time: Date): number => time.getTime() - firstEmittedAt

const firstEmittedAt = Date.UTC(2026, 2, 1)
