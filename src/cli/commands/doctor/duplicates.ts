import { eventTypes } from '../../../index.ts'
import { isPrompt } from './acknowledges.ts'
import type { Endpoint, TestEvent } from './endpoint.ts'
import { type Finding, failed, ok, told } from './finding.ts'
import type { Reply } from './probe.ts'

const handledOnce = 'handles an event once'
const fix = 'an event must be claimed by its key before it is handled, as createReceiver() does'
const atOnce = 5

/** Whether an event that is delivered again is acknowledged again, and handled once where that can be seen. */
export async function* handlesDuplicates(endpoint: Endpoint): AsyncIterable<Finding> {
  const tried = await deliverHandled(endpoint)
  if (tried === undefined) {
    const reason = `not checked: no handler is registered for ${eventTypes.join(', ')}`
    yield { check: handledOnce, verdict: 'warning', reason, fix: 'register one, or onAny, to check' }
    return
  }
  const { event, first } = tried
  const check = 'acknowledges a duplicate'
  const second = await endpoint.deliver(event)
  if (!isPrompt(second) && !isInProgress(second)) {
    yield failed(check, told(second), 'answer a duplicate 200, at once: any other answer asks for it again')
  } else yield judge(check, [first, second], ['accepted', 'handled'])
  yield handlesConcurrentDuplicates(endpoint, endpoint.newEvent(event.type))
}

async function handlesConcurrentDuplicates(endpoint: Endpoint, event: TestEvent): Promise<Finding> {
  const check = `acknowledges ${atOnce} duplicates at once`
  const replies = await Promise.all(Array.from({ length: atOnce }, () => endpoint.deliver(event)))
  const rejected = replies.find((reply) => reply.status !== 200 && !isInProgress(reply))
  if (rejected !== undefined) return failed(check, told(rejected), 'answer every duplicate 200')
  // Those that arrive while it is handled may wait for the same result.
  return judge(check, replies, ['accepted'])
}

/** Delivers an event of a type that is not ignored, if there is one. */
async function deliverHandled(endpoint: Endpoint): Promise<{ event: TestEvent; first: Reply } | undefined> {
  for (const type of new Set(['encoding.started', ...eventTypes] as const)) {
    const event = endpoint.newEvent(type)
    const first = await endpoint.deliver(event)
    if (first.outcome !== 'ignored') return { event, first }
  }
  return undefined
}

/** Whether another process, of those that share a store, has the event: the sender must not forget it yet. */
const isInProgress = ({ outcome }: Reply): boolean => outcome === 'in_progress'

/** @param once the outcomes that only one of the deliveries may have */
function judge(check: string, replies: readonly Reply[], once: readonly string[]): Finding {
  const outcomes = replies.map(({ outcome = '' }) => outcome)
  const taken = outcomes.filter((outcome) => once.includes(outcome)).length
  const whole = `${check}, and ${handledOnce}`
  if (taken > 1) return failed(whole, `${taken} deliveries of one event were ${outcomes[0]}`, fix)
  const inProgress = replies.filter(isInProgress).length
  if (inProgress > 0) return ok(whole, `${inProgress} answered 503 while another process has the event`)
  const duplicates = outcomes.filter((outcome) => outcome === 'duplicate').length
  if (duplicates > 0) return ok(whole, `200 each time, ${duplicates} as duplicate`)
  const note = 'whether it was handled once cannot be seen from outside'
  return { ...ok(check, told(replies.at(-1) as Reply)), note }
}
