import { eventTypes } from '../../../index.ts'
import { isPrompt } from './acknowledges.ts'
import type { Endpoint, TestEvent } from './endpoint.ts'
import { type Finding, failed, inWords, ok } from './finding.ts'
import type { Reply } from './probe.ts'

const handledOnce = 'handles an event once'
const fix = 'claim each event by its key before you handle it, as createReceiver() does'
const atOnce = 5

/** Checks that a duplicate is acknowledged, and that its event is handled once if the answers show it. */
export async function* handlesDuplicates(endpoint: Endpoint): AsyncIterable<Finding> {
  const delivered = await deliverHandled(endpoint)
  if (delivered === undefined) {
    const reason = `not checked: no handler is registered for ${eventTypes.join(', ')}`
    const fix = 'register a handler for one of them, or with onAny, and run the check again'
    yield { check: handledOnce, verdict: 'warning', reason, fix }
    return
  }
  const { event, first } = delivered
  const check = 'acknowledges a duplicate'
  const second = await endpoint.deliver(event)
  if (!isPrompt(second) && !isInProgress(second)) {
    yield failed(check, inWords(second), 'answer a duplicate with 200 at once: any other answer can cause a retry')
  } else yield judge(check, [first, second], ['accepted', 'handled'])
  yield handlesConcurrentDuplicates(endpoint, endpoint.newEvent(event.type))
}

async function handlesConcurrentDuplicates(endpoint: Endpoint, event: TestEvent): Promise<Finding> {
  const check = `acknowledges ${atOnce} concurrent duplicates`
  const replies = await Promise.all(Array.from({ length: atOnce }, () => endpoint.deliver(event)))
  const rejected = replies.find((reply) => reply.status !== 200 && !isInProgress(reply))
  if (rejected !== undefined) return failed(check, inWords(rejected), 'answer every duplicate with 200')
  // 'handled' may occur several times: duplicates that arrive meanwhile wait for the same result.
  return judge(check, replies, ['accepted'])
}

/** Delivers an event of a type that the endpoint does not ignore, if there is one. */
async function deliverHandled(endpoint: Endpoint): Promise<{ event: TestEvent; first: Reply } | undefined> {
  for (const type of new Set(['encoding.started', ...eventTypes] as const)) {
    const event = endpoint.newEvent(type)
    const first = await endpoint.deliver(event)
    if (first.outcome !== 'ignored') return { event, first }
  }
  return undefined
}

/** `true` if another process that shares the store is handling the event. It may still be lost, so 503 is right. */
const isInProgress = ({ outcome }: Reply): boolean => outcome === 'in_progress'

/**
 * Judges the answers to all deliveries of one event.
 * @param once outcomes that at most one of the deliveries may have
 */
function judge(check: string, replies: readonly Reply[], once: readonly string[]): Finding {
  const outcomes = replies.map(({ outcome = '' }) => outcome)
  const taken = outcomes.filter((outcome) => once.includes(outcome)).length
  const fullCheck = `${check}, and ${handledOnce}`
  if (taken > 1) return failed(fullCheck, `${taken} deliveries of one event were ${outcomes[0]}`, fix)
  const inProgress = replies.filter(isInProgress).length
  if (inProgress > 0) return ok(fullCheck, `${inProgress} answered 503 while another process handles the event`)
  const duplicates = outcomes.filter((outcome) => outcome === 'duplicate').length
  if (duplicates > 0) return ok(fullCheck, `200 each time, ${duplicates} as duplicate`)
  const note = 'the answers do not show whether the event was handled once'
  return { ...ok(check, inWords(replies.at(-1) as Reply)), note }
}
