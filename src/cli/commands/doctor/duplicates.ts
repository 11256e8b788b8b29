import { eventTypes } from '../../../index.ts'
import { isPrompt } from './acknowledges.ts'
import type { Endpoint, TestEvent } from './endpoint.ts'
import { type Finding, failed, inWords, ok, wasAccepted } from './finding.ts'
import type { Reply } from './probe.ts'

const handledOnce = 'handles an event once'
const fix = 'claim each event by its key before you handle it, as createReceiver() does'
const atOnce = 5

/** Checks that a duplicate is acknowledged, and that its event is handled once if the answers show it. */
export async function* handlesDuplicates(endpoint: Endpoint): AsyncIterable<Finding> {
  const delivered = await deliverHandled(endpoint)
  if ('rejected' in delivered) {
    const reason =
      delivered.rejected === undefined
        ? `no handler is registered for ${eventTypes.join(', ')}`
        : `every type of event is ignored or rejected, for example: ${inWords(delivered.rejected)}`
    const fix = 'register a handler for one of them, or with onAny, and run the check again'
    yield { check: handledOnce, verdict: 'warning', reason: `not checked: ${reason}`, fix }
    return
  }
  const { event, first } = delivered
  const check = 'acknowledges a duplicate'
  const second = await endpoint.deliver(event)
  if (!isPrompt(second) && !isInProgress(second)) {
    yield failed(check, inWords(second), 'acknowledge a duplicate at once: a rejected one can be sent again')
  } else yield await judge(endpoint, check, [first, second], ['accepted', 'handled'])
  yield handlesConcurrentDuplicates(endpoint, endpoint.newEvent(event.type))
}

async function handlesConcurrentDuplicates(endpoint: Endpoint, event: TestEvent): Promise<Finding> {
  const check = `acknowledges ${atOnce} concurrent duplicates`
  const replies = await Promise.all(Array.from({ length: atOnce }, () => endpoint.deliver(event)))
  const rejected = replies.find((reply) => !wasAccepted(reply) && !isInProgress(reply))
  if (rejected !== undefined) return failed(check, inWords(rejected), 'acknowledge every duplicate')
  // 'handled' may occur several times: duplicates that arrive meanwhile wait for the same result.
  return judge(endpoint, check, replies, ['accepted'])
}

/** Delivers an event of a type that the endpoint neither ignores nor rejects, if there is one. */
async function deliverHandled(endpoint: Endpoint): Promise<Delivered | { rejected: Reply | undefined }> {
  let rejected: Reply | undefined
  for (const type of new Set(['encoding.started', ...eventTypes] as const)) {
    const event = endpoint.newEvent(type)
    const first = await endpoint.deliver(event)
    if (!wasAccepted(first)) rejected = first
    else if (first.outcome !== 'ignored') return { event, first }
  }
  return { rejected }
}

/** An event that the endpoint accepted, and its answer. */
interface Delivered {
  readonly event: TestEvent
  readonly first: Reply
}

/** `true` if another process that shares the store is handling the event. It may still be lost, so 503 is right. */
const isInProgress = ({ outcome }: Reply): boolean => outcome === 'in_progress'

/**
 * Judges the answers to all deliveries of one event.
 * @param once outcomes that at most one of the deliveries may have
 */
async function judge(
  endpoint: Endpoint,
  check: string,
  replies: readonly Reply[],
  once: readonly string[],
): Promise<Finding> {
  const outcomes = replies.map(({ outcome = '' }) => outcome)
  const taken = outcomes.filter((outcome) => once.includes(outcome)).length
  const fullCheck = `${check}, and ${handledOnce}`
  if (taken > 1 && (await usesOurWords(endpoint)))
    return failed(fullCheck, `${taken} deliveries of one event were ${outcomes[0]}`, fix)
  const inProgress = replies.filter(isInProgress).length
  if (inProgress > 0) return ok(fullCheck, `${inProgress} answered 503 while another process handles the event`)
  const duplicates = outcomes.filter((outcome) => outcome === 'duplicate').length
  if (duplicates > 0) return ok(fullCheck, `200 each time, ${duplicates} as duplicate`)
  const note = 'the answers do not show whether the event was handled once'
  return { ...ok(check, inWords(replies.at(-1) as Reply)), note }
}

/**
 * `true` if the endpoint is a receiver of this package, by its answer to a body that is not JSON. Any other may answer
 * every delivery with `accepted`.
 */
async function usesOurWords(endpoint: Endpoint): Promise<boolean> {
  const { status, outcome } = await endpoint.deliver({ ...endpoint.newEvent(), body: new TextEncoder().encode('{') })
  return status === 400 && outcome === 'malformed'
}
