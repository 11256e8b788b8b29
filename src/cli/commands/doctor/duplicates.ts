import { type EventType, eventTypes } from '../../../index.ts'
import { judgeAcknowledgement } from './acknowledges.ts'
import type { Endpoint, TestEvent } from './endpoint.ts'
import { type Finding, failed, inWords, ok, wasAccepted } from './finding.ts'
import type { Reply } from './probe.ts'

const handledOnce = 'handles an event once'
const concurrentCopies = 5
const acknowledgeFix = 'acknowledge duplicates too: the service can repeat an event until it is acknowledged'
const lookFix = `check that your handlers ran once for the event that came twice, and once for the event that came ${concurrentCopies} times`
const lookForSampleFix = 'check that your handlers ran once for the sample'
const claimFix = 'claim each event by its key before handling it, as createReceiver() does'

/** Checks that duplicates are acknowledged and handled once. Only some answers reveal the latter. */
export async function* handlesDuplicates(endpoint: Endpoint, acknowledged: Reply): AsyncIterable<Finding> {
  const isSample = endpoint.sample !== undefined
  const delivered = isSample ? deliveredSample(endpoint, acknowledged) : await deliverHandled(endpoint)
  if (delivered === 'test') {
    const reason = 'no handler asks for test deliveries'
    const fix = 'give a handler the option { tests: true }, and run the check again'
    yield { check: handledOnce, verdict: 'skipped', reason, fix }
    return
  }
  if ('rejected' in delivered) {
    const reason =
      delivered.rejected === undefined
        ? `no handler is registered for ${isSample ? 'the type of the sample' : eventTypes.join(', ')}`
        : `every type of event is ignored or not acknowledged, for example: ${inWords(delivered.rejected)}`
    const fix = `register a handler for ${isSample ? 'it' : 'one of them'}, or with onAny, and run the check again`
    yield { check: handledOnce, verdict: 'warning', reason: `not checked: ${reason}`, fix }
    return
  }
  const { type, event, first } = delivered
  const check = 'acknowledges a duplicate'
  const second = await endpoint.deliver(event)
  if (!isInProgress(second)) yield judgeAcknowledgement(check, second, acknowledgeFix)
  const ofTwo = await judge(endpoint, 'two deliveries', [first, second], ['accepted', 'handled'])
  if (ofTwo !== undefined) yield ofTwo

  const concurrent = endpoint.newEvent(type)
  const replies = await Promise.all(Array.from({ length: concurrentCopies }, () => endpoint.deliver(concurrent)))
  const open = replies.filter((reply) => !isInProgress(reply))
  const example = open.find((reply) => !wasAccepted(reply)) ?? open.toSorted((a, b) => b.durationMs - a.durationMs)[0]
  if (example !== undefined)
    yield judgeAcknowledgement(`acknowledges ${concurrentCopies} concurrent duplicates`, example, acknowledgeFix)
  // 'handled' may occur several times: concurrent duplicates wait for the same result.
  // The sample was handled before, so these deliveries say nothing about concurrent ones of a new event.
  const ofMany = isSample
    ? undefined
    : await judge(endpoint, `${concurrentCopies} concurrent deliveries`, replies, ['accepted'])
  if (ofMany !== undefined) yield ofMany
  const fix = isSample ? lookForSampleFix : lookFix
  if (ofTwo === undefined && ofMany === undefined)
    yield { check: handledOnce, verdict: 'warning', reason: 'unknown: the answers do not show it', fix }
}

const deliveredSample = (endpoint: Endpoint, first: Reply): AnsweredEvent | { rejected: undefined } =>
  first.outcome === 'ignored' ? { rejected: undefined } : { type: undefined, event: endpoint.newEvent(), first }

/**
 * Finds an event type that the endpoint accepts and handles.
 * @returns `test` if it has handlers, but none for test deliveries
 */
async function deliverHandled(endpoint: Endpoint): Promise<AnsweredEvent | 'test' | { rejected: Reply | undefined }> {
  let isTest = false
  let rejected: Reply | undefined
  for (const type of new Set(['encoding.started', ...eventTypes] as const)) {
    const event = endpoint.newEvent(type)
    const first = await endpoint.deliver(event)
    if (!wasAccepted(first)) rejected = first
    else if (first.outcome === 'test') isTest = true
    else if (first.outcome !== 'ignored') return { type, event, first }
  }
  return isTest ? 'test' : { rejected }
}

interface AnsweredEvent {
  readonly type: EventType | undefined
  readonly event: TestEvent
  readonly first: Reply
}

/** `true` if another process is handling the event. It may still crash, so 503 is right. */
const isInProgress = ({ outcome }: Reply): boolean => outcome === 'in_progress'

/** @param once outcomes that at most one delivery may have. @returns `undefined` if the answers don't show it */
async function judge(
  endpoint: Endpoint,
  deliveries: string,
  replies: readonly Reply[],
  once: readonly string[],
): Promise<Finding | undefined> {
  const check = `${handledOnce} when it comes in ${deliveries}`
  const outcomes = replies.map(({ outcome = '' }) => outcome)
  const taken = outcomes.filter((outcome) => once.includes(outcome)).length
  if (taken > 1 && (await usesOurWords(endpoint)))
    return failed(check, `${taken} were answered as ${outcomes[0]}`, claimFix)
  const inProgress = replies.filter(isInProgress).length
  if (inProgress > 0) return ok(check, `${inProgress} answered 503 while another process handles the event`)
  const duplicates = outcomes.filter((outcome) => outcome === 'duplicate').length
  return duplicates > 0 ? ok(check, `${duplicates} answered as duplicate`) : undefined
}

/** `true` for a receiver of this package, by its answer to invalid JSON. Others may answer `accepted` to everything. */
async function usesOurWords(endpoint: Endpoint): Promise<boolean> {
  const { status, outcome } = await endpoint.deliver({ ...endpoint.newEvent(), body: new TextEncoder().encode('{') })
  return status === 400 && outcome === 'malformed'
}
