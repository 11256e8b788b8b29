import { type EventType, eventTypes } from '../../../index.ts'
import { judgeAcknowledgement } from './acknowledges.ts'
import type { Endpoint, TestEvent } from './endpoint.ts'
import { type Finding, failed, inWords, ok, wasAccepted } from './finding.ts'
import type { Reply } from './probe.ts'

const handledOnce = 'handles an event once'
const concurrentCopies = 5
const acknowledgeFix = 'also acknowledge a duplicate: the service can repeat an event until it is acknowledged'
const lookFix = `check that your handlers ran once for the event that came twice, and once for the event that came ${concurrentCopies} times`
const lookForSampleFix = 'check that your handlers ran once for the sample'
const claimFix = 'claim each event by its key before you handle it, as createReceiver() does'

/** Checks that duplicates are acknowledged, and that their event is handled once. Only some answers show the latter. */
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
  // 'handled' may occur several times: duplicates that arrive meanwhile wait for the same result.
  // The sample was handled before: these do not show what concurrent deliveries of a new event would do.
  const ofMany = isSample
    ? undefined
    : await judge(endpoint, `${concurrentCopies} concurrent deliveries`, replies, ['accepted'])
  if (ofMany !== undefined) yield ofMany
  const fix = isSample ? lookForSampleFix : lookFix
  if (ofTwo === undefined && ofMany === undefined)
    yield { check: handledOnce, verdict: 'warning', reason: 'not known: the answers do not show it', fix }
}

const deliveredSample = (endpoint: Endpoint, first: Reply): Delivered | { rejected: undefined } =>
  first.outcome === 'ignored' ? { rejected: undefined } : { type: undefined, event: endpoint.newEvent(), first }

/**
 * Delivers an event of a type that the endpoint neither ignores nor rejects, if there is one.
 * @returns `test` if the endpoint has handlers, but none that asks for test deliveries
 */
async function deliverHandled(endpoint: Endpoint): Promise<Delivered | 'test' | { rejected: Reply | undefined }> {
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

/** An event that the endpoint accepted, and its answer. */
interface Delivered {
  readonly type: EventType | undefined
  readonly event: TestEvent
  readonly first: Reply
}

/** `true` if another process that shares the store is handling the event. It may still be lost, so 503 is right. */
const isInProgress = ({ outcome }: Reply): boolean => outcome === 'in_progress'

/**
 * Judges by the answers to all deliveries of one event whether it is handled once. `undefined`: they do not show it.
 * @param once outcomes that at most one of the deliveries may have
 */
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

/**
 * `true` if the endpoint is a receiver of this package, by its answer to a body that is not JSON. Any other may answer
 * every delivery with `accepted`.
 */
async function usesOurWords(endpoint: Endpoint): Promise<boolean> {
  const { status, outcome } = await endpoint.deliver({ ...endpoint.newEvent(), body: new TextEncoder().encode('{') })
  return status === 400 && outcome === 'malformed'
}
