import { WebhookError } from '../errors.ts'
import type { LookupOutcome } from '../events/lookup.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import { type AnySender, checkTypes, typedBy } from '../events/sender.ts'
import type { EventFrom, LookupOf, MediaService, TypeOf } from '../events/types.ts'
import type { AcceptedEvent, Expectation, ExpectationChanges } from '../inbox/inbox.ts'
import type { EventRecord } from '../inbox/reading.ts'
import { checkedApart, checkOptions, text } from '../internal/check-options.ts'
import { parseDuration } from '../internal/duration.ts'
import { maxWaitMs } from '../internal/timers.ts'
import type { Handler, HandlerContext } from './handler.ts'

/** Rule of an expectation. */
export interface ExpectationOptions<Type extends string = TypeOf<MediaService>> {
  /** One of these types must follow. */
  readonly then: Type | readonly Type[]
  /** Time limit, from the acceptance of the first event: `'2 h'`, or a number of ms. */
  readonly within: number | string
  /**
   * Name in reports, dead letters and storage. Open expectations find their rule by it, so keep it across deploys.
   * @defaultValue the function's name or `overdue`, numbered if in use
   */
  readonly name?: string
}

/**
 * An expectation that was not met in time.
 * @typeParam Type type of the event that began it
 */
export interface Overdue<Type extends string = TypeOf<MediaService>, Of extends AnySender = MediaService> {
  readonly rule: string
  /** The media item whose event is missing. */
  readonly mediaId: string
  /** The event that began the expectation. */
  readonly event: EventFrom<Of, Type>
  readonly dueAt: Date
  /**
   * Accepts an event that you looked up for the media item, like `receiver.accept`. It also ends other expectations of
   * the media item that wait for it. Its handlers run after this one.
   */
  accept(found: Omit<LookupOf<Of>, 'mediaId' | 'principal'>): Promise<LookupOutcome>
}

/** Handles an overdue expectation. Succeeds, fails and is retried like an event handler. */
export type OverdueHandler<
  Type extends string = TypeOf<MediaService>,
  Additions = unknown,
  Of extends AnySender = MediaService,
> = (overdue: Overdue<Type, Of>, context: HandlerContext & Additions) => unknown

/** Type of the event that an inbox creates for an overdue expectation. */
export const overdueType = 'expectation.overdue'

/** The event that began the expectation, with another type and key. */
type OverdueEvent = MediaEvent & {
  /** Never parsed from a delivery, so a sender can't forge it. */
  readonly overdue?: {
    readonly rule: string
    readonly type: string
    readonly key: string
    readonly dueAt: string
    readonly awaited: readonly string[]
  }
}

interface ExpectationRule {
  readonly name: string
  readonly types: readonly string[]
  readonly ends: readonly string[]
  readonly withinMs: number
}

/** Name of the overdue rule; `undefined` for any other event. */
export const ruleOf = (event: MediaEvent): string | undefined => (event as OverdueEvent).overdue?.rule

export class ExpectationRules {
  #rules: readonly ExpectationRule[] = []

  /** @throws WebhookError `invalid_option` */
  add(name: string, types: readonly string[], options: ExpectationOptions<string>, sender: AnySender): void {
    const { then, within } = options
    checkTypes('expect', types, sender)
    const ends = [then].flat()
    checkTypes('expect: then', ends, sender)
    const withinMs = typeof within === 'string' ? parseDuration(within) : within
    if (!(withinMs >= 1 && withinMs <= maxWaitMs))
      throw invalid("within must be a duration up to 24 days, such as '2 h', or a number of ms")
    const both = types.find((type) => ends.includes(type))
    if (both !== undefined)
      throw invalid(`${both} can't both begin and end an expectation: leave it out of one of the two`)
    this.#rules = [...this.#rules, { name, types, ends, withinMs }]
  }

  mention(type: string): boolean {
    return this.#rules.some(({ types, ends }) => types.includes(type) || ends.includes(type))
  }

  expectationChanges({ event, receivedAt, trace }: AcceptedEvent): ExpectationChanges | undefined {
    if (event.test) return undefined
    const begins = this.#rules
      .filter(({ types }) => types.includes(event.type))
      .map((rule) => makeExpectation(rule, { event, receivedAt, trace }))
    const ends = this.#rules.filter((rule) => rule.ends.includes(event.type)).map(({ name }) => name)
    if (begins.length === 0 && ends.length === 0) return undefined
    return { at: event.emittedAt ?? receivedAt, begins, ends }
  }
}

/** @throws WebhookError `invalid_option` */
export const checkRule = (options: ExpectationOptions<string>): void =>
  checkOptions<ExpectationOptions<string>>('expect', options ?? null, {
    then: checkedApart,
    within: checkedApart,
    name: text,
  })

const invalid = (problem: string): WebhookError => new WebhookError('invalid_option', `expect: ${problem}`)

function makeExpectation(
  { name: rule, ends: awaited, withinMs }: ExpectationRule,
  { event, receivedAt, trace }: AcceptedEvent,
): Expectation {
  const { type, key } = event
  const dueAt = new Date(receivedAt.getTime() + withinMs)
  const details = { rule, type, key, dueAt: dueAt.toISOString(), awaited }
  // Unescaped, a colon in the name could yield the key of another rule and event.
  const escapedRule = rule.replace(/[%:]/g, encodeURIComponent)
  const overdue = { ...event, type: overdueType, key: `overdue:${escapedRule}:${key}`, overdue: details }
  return { rule, dueAt, overdue: { event: Object.freeze(overdue) as unknown as MediaEvent, receivedAt: dueAt, trace } }
}

export type AcceptLookup = (found: object) => Promise<LookupOutcome>

/** Wraps an `expect` handler into a handler of overdue events. */
export const handlerOfOverdue =
  (handler: OverdueHandler<never, never>, acceptLookup: AcceptLookup, sender: AnySender): Handler<never, never> =>
  (event: MediaEvent, context) => {
    const { mediaId, principal } = event
    // Async: a bad argument rejects instead of throwing.
    const accept: Overdue['accept'] = async (found) => acceptLookup({ ...found, mediaId, principal })
    const { event: begun, ...overdue } = readOverdueReport(event) as OverdueReport
    const report = { ...overdue, event: typedBy(sender, begun), accept }
    return handler(report as unknown as Overdue<never>, context)
  }

type OverdueReport = Omit<Overdue, 'accept' | 'event'> & { readonly event: MediaEvent }

/** Reads the expectation from an overdue event; `undefined` for any other event. */
export function readOverdueReport(event: OverdueEvent): OverdueReport | undefined {
  const { overdue, ...fields } = event
  if (overdue === undefined) return undefined
  const { rule, type, key, dueAt } = overdue
  const begun = Object.freeze({ ...fields, type, key }) as MediaEvent
  return { rule, mediaId: event.mediaId, event: begun, dueAt: new Date(dueAt) }
}

/** What is still known once the overdue event is handled and its payload gone. */
export interface OverdueRecord {
  readonly rule: string
  /** Key of the event that began the expectation. */
  readonly begunBy: string
  readonly awaited: readonly string[]
}

/** Parses the key, because the record of a handled event has no payload. `undefined` for any other event. */
export function overdueIn({ key, awaited }: Pick<EventRecord, 'key' | 'awaited'>): OverdueRecord | undefined {
  const [, escapedRule, begunBy] = /^overdue:([^:]*):(.*)$/s.exec(key) ?? []
  if (awaited === undefined || escapedRule === undefined || begunBy === undefined) return undefined
  return { rule: escapedRule.replace(/%(?:25|3A)/g, decodeURIComponent), begunBy, awaited }
}
