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

/** The rule of an expectation. */
export interface ExpectationOptions<Type extends string = TypeOf<MediaService>> {
  /** An event of one of these types has to follow. */
  readonly then: Type | readonly Type[]
  /** The time in which it has to follow, from the acceptance of the first event: `'2 h'`, or a number of ms. */
  readonly within: number | string
  /**
   * The name of the rule, in reports, in dead letters and in storage. Open expectations belong to the rule with their name.
   * @defaultValue the function's name, numbered if it is taken; `overdue` if it has none
   */
  readonly name?: string
}

/**
 * An expectation that no event has ended in time.
 * @typeParam Type the type of the event that began it
 */
export interface Overdue<Type extends string = TypeOf<MediaService>, Of extends AnySender = MediaService> {
  /** The name of the rule. */
  readonly rule: string
  /** The media item whose event did not come. */
  readonly mediaId: string
  /** The event that began the expectation. */
  readonly event: EventFrom<Of, Type>
  /** The deadline. No event of `then` was accepted before it. */
  readonly dueAt: Date
  /**
   * Takes what a look-up says has happened to the media item, like `receiver.accept`. The event ends the other expectations
   * of the media item that wait for it, and its own handlers run after this one.
   */
  accept(found: Omit<LookupOf<Of>, 'mediaId' | 'principal'>): Promise<LookupOutcome>
}

/** Handles what is overdue. It succeeds, fails and is retried like a handler of an event. */
export type OverdueHandler<
  Type extends string = TypeOf<MediaService>,
  Additions = unknown,
  Of extends AnySender = MediaService,
> = (overdue: Overdue<Type, Of>, context: HandlerContext & Additions) => unknown

/** The type of the event that an inbox hands over when an expectation is overdue. */
export const overdueType = 'expectation.overdue'

/** The event that an inbox hands over when an expectation is overdue: the one that began it, under another type and key. */
type OverdueEvent = MediaEvent & {
  /** Only the receiver sets it, so no sender can make such an event. */
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

/** Returns the name of the rule that an event reports as overdue, or `undefined` if it is the event of a delivery. */
export const ruleOf = (event: MediaEvent): string | undefined => (event as OverdueEvent).overdue?.rule

/** The rules of the expectations, in the order of their registration. */
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
      throw invalid("within has to be a time of up to 24 days, such as '2 h', or a number of ms")
    const both = types.find((type) => ends.includes(type))
    if (both !== undefined)
      throw invalid(`an event of ${both} would end what it begins: leave it out of one of the two`)
    this.#rules = [...this.#rules, { name, types, ends, withinMs }]
  }

  /** Returns `true` if events of the type begin or end an expectation. */
  mention(type: string): boolean {
    return this.#rules.some(({ types, ends }) => types.includes(type) || ends.includes(type))
  }

  /** Returns the effects of an event on expectations. `undefined` if it has none. */
  expectationChanges({ event, receivedAt, trace }: AcceptedEvent): ExpectationChanges | undefined {
    if (event.test) return undefined
    const begins = this.#rules
      .filter(({ types }) => types.includes(event.type))
      .map((rule) => expectationOf(rule, { event, receivedAt, trace }))
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

function expectationOf(
  { name: rule, ends: awaited, withinMs }: ExpectationRule,
  { event, receivedAt, trace }: AcceptedEvent,
): Expectation {
  const { type, key } = event
  const dueAt = new Date(receivedAt.getTime() + withinMs)
  const details = { rule, type, key, dueAt: dueAt.toISOString(), awaited }
  // A colon in the name would make the key of another rule and event.
  const escapedRule = rule.replace(/[%:]/g, encodeURIComponent)
  const overdue = { ...event, type: overdueType, key: `overdue:${escapedRule}:${key}`, overdue: details }
  return { rule, dueAt, overdue: { event: Object.freeze(overdue) as unknown as MediaEvent, receivedAt: dueAt, trace } }
}

/** Takes what a look-up found. */
export type AcceptLookup = (found: object) => Promise<LookupOutcome>

/** Makes the handler of the events that report what is overdue. */
export const handlerOfOverdue =
  (handler: OverdueHandler<never, never>, acceptLookup: AcceptLookup, sender: AnySender): Handler<never, never> =>
  (event: MediaEvent, context) => {
    const { mediaId, principal } = event
    // The method is async, so that it also rejects for a look-up that is not an object.
    const accept: Overdue['accept'] = async (found) => acceptLookup({ ...found, mediaId, principal })
    const { event: begun, ...overdue } = overdueOf(event) as OverdueReport
    const report = { ...overdue, event: typedBy(sender, begun), accept }
    return handler(report as unknown as Overdue<never>, context)
  }

/** What an inbox stores about an overdue expectation. */
type OverdueReport = Omit<Overdue, 'accept' | 'event'> & { readonly event: MediaEvent }

/** Returns what an event reports as overdue, or `undefined` if it is the event of a delivery. */
export function overdueOf(event: OverdueEvent): OverdueReport | undefined {
  const { overdue, ...fields } = event
  if (overdue === undefined) return undefined
  const { rule, type, key, dueAt } = overdue
  const begun = Object.freeze({ ...fields, type, key }) as MediaEvent
  return { rule, mediaId: event.mediaId, event: begun, dueAt: new Date(dueAt) }
}

/** What a record says about an overdue expectation. Also known once its event was handled and is gone. */
export interface OverdueRecord {
  readonly rule: string
  /** Key of the event that began it. */
  readonly begunBy: string
  readonly awaited: readonly string[]
}

/** Reads the rule from the key: a handled event's record has no event. `undefined` if it is the event of a delivery. */
export function overdueIn({ key, awaited }: Pick<EventRecord, 'key' | 'awaited'>): OverdueRecord | undefined {
  const [, escapedRule, begunBy] = /^overdue:([^:]*):(.*)$/s.exec(key) ?? []
  if (awaited === undefined || escapedRule === undefined || begunBy === undefined) return undefined
  return { rule: escapedRule.replace(/%(?:25|3A)/g, decodeURIComponent), begunBy, awaited }
}
